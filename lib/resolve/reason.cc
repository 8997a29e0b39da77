#include "ksweep/resolve.h"

namespace ksweep {

std::string_view ReasonName(Reason reason) {
  switch (reason) {
    case Reason::kNotFound:
      return "NotFound";
    case Reason::kModuleNotLoaded:
      return "ModuleNotLoaded";
    case Reason::kAmbiguous:
      return "Ambiguous";
    case Reason::kNotTraceable:
      return "NotTraceable";
    case Reason::kUndecidable:
      return "Undecidable";
    case Reason::kBlacklisted:
      return "Blacklisted";
    case Reason::kDenied:
      return "Denied";
    case Reason::kDefaultDenied:
      return "DefaultDenied";
    case Reason::kInitSection:
      return "InitSection";
    case Reason::kNoBtf:
      return "NoBtf";
    case Reason::kNoModuleBtf:
      return "NoModuleBtf";
    case Reason::kNoSuchBtfId:
      return "NoSuchBtfId";
    case Reason::kUnsupportedPrototype:
      return "UnsupportedPrototype";
    case Reason::kNoReturn:
      return "NoReturn";
    case Reason::kAddressesHidden:
      return "AddressesHidden";
    case Reason::kNotAFunction:
      return "NotAFunction";
    case Reason::kCookieConflict:
      return "CookieConflict";
    case Reason::kRefusedByKernel:
      return "RefusedByKernel";
  }
  return "Unknown";
}

}  // namespace ksweep
