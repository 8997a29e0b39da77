#include "lib/attach/kinds/kprobe_multi.h"

#include <cerrno>
#include <cstring>
#include <limits>
#include <string>

#include "absl/strings/str_format.h"
#include "lib/attach/kinds/errno_hints.h"
#include "lib/base/abseil.h"
#include "lib/base/errno_status.h"

namespace ksweep {
namespace {

uint64_t ToWord(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

template <typename Word>
std::vector<uint8_t> EncodeAs(absl::Span<const uint64_t> words) {
  std::vector<uint8_t> bytes(words.size() * sizeof(Word));
  uint8_t* place = bytes.data();
  for (uint64_t wide : words) {
    const Word word = static_cast<Word>(wide);
    std::memcpy(place, &word, sizeof(Word));
    place += sizeof(Word);
  }
  return bytes;
}

absl::Status CheckFitsIn32Bits(absl::Span<const uint64_t> words) {
  for (uint64_t word : words) {
    if (word > std::numeric_limits<uint32_t>::max()) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "address %#x does not fit into the kernel's 32 bits", word));
    }
  }
  return absl::OkStatus();
}

// Names as the kernel reads them. A vector, whose bytes stay where they are
// when it is moved.
std::vector<char> NulTerminated(absl::Span<const std::string_view> names) {
  size_t bytes = 0;
  for (std::string_view name : names) bytes += name.size() + 1;
  std::vector<char> text;
  text.reserve(bytes);
  for (std::string_view name : names) {
    text.insert(text.end(), name.begin(), name.end());
    text.push_back('\0');
  }
  return text;
}

std::vector<uint64_t> PointersInto(const std::vector<char>& text,
                                   absl::Span<const std::string_view> names) {
  std::vector<uint64_t> pointers;
  pointers.reserve(names.size());
  const char* place = text.data();
  for (std::string_view name : names) {
    pointers.push_back(ToWord(place));
    place += name.size() + 1;
  }
  return pointers;
}

absl::StatusOr<Link> CreateLink(BpfSys& sys, const KprobeMultiCall& call,
                                KprobeMultiLinkAttr attr) {
  attr.prog_fd = static_cast<uint32_t>(call.prog_fd);
  attr.attach_type = call.abi.attach_type;
  attr.flags = call.abi.link_flags;
  attr.cnt = static_cast<uint32_t>(call.cnt());
  attr.cookies = ToWord(call.cookies.data());
  const int result = sys.Bpf(kBpfLinkCreate, &attr, sizeof(attr));
  if (result < 0) return KprobeMultiError(-result, call);
  return Link(result);
}

absl::StatusOr<Link> CreateByAddress(BpfSys& sys, const KprobeMultiCall& call) {
  absl::StatusOr<std::vector<uint8_t>> addrs =
      EncodeWords(call.addrs, kKernelWordBytes);
  if (!addrs.ok()) return addrs.status();
  KprobeMultiLinkAttr attr;
  attr.addrs = ToWord(addrs->data());
  return CreateLink(sys, call, attr);
}

absl::StatusOr<Link> CreateByName(BpfSys& sys, const KprobeMultiCall& call) {
  const std::vector<char> text = NulTerminated(call.names);
  absl::StatusOr<std::vector<uint8_t>> syms =
      EncodeWords(PointersInto(text, call.names), kKernelWordBytes);
  if (!syms.ok()) return syms.status();
  KprobeMultiLinkAttr attr;
  attr.syms = ToWord(syms->data());
  return CreateLink(sys, call, attr);
}

// What bpf_kprobe_multi_link_attach() (kernel/trace/bpf_trace.c, read up to
// Linux 7.3) and the calls under it return, and why.
constexpr ErrnoHint kErrnoHints[] = {
    // Both without CONFIG_FPROBE and on a 32-bit kernel. An enumerator in the
    // kernel's BTF does not tell: Debian's Linux 6.1 has the attach type only.
    {EOPNOTSUPP,
     "the kernel has no kprobe.multi; it needs Linux 5.18, 64 bits, and "
     "CONFIG_FPROBE (look for it in /boot/config-* or /proc/config.gz)"},
    // Too many meanings to say which. A bad address is one of them up to Linux
    // 6.12 and ENOENT from 6.18 on.
    {EINVAL,
     "refused without a reason: a function that is not traceable (kernels "
     "before 6.18 say it so), a program that was not loaded for this kind or "
     "is sleepable, a module that is being unloaded, or Linux before 5.18, for "
     "kprobe.session before 6.10"},
    {ENOENT,
     "an address is not a function that ftrace can trace; the resolution may "
     "be older than the last module load, or of another kernel: resolve again"},
    {ESRCH,
     "a name is not a function that ftrace can trace, or is there twice; "
     "resolve again"},
    {E2BIG,
     "a name is longer than the kernel's own can be, or the link is for more "
     "functions than the kernel takes"},
    {ENOMEM,
     "the kernel got no memory for a link of this size, see "
     "AttachOptions::max_per_link"},
    {EPERM,
     "not permitted; needs CAP_BPF and CAP_PERFMON, or root, and a kernel that "
     "is not locked down (/sys/kernel/security/lockdown)"},
};

std::string Describe(const KprobeMultiCall& call) {
  return absl::StrFormat(
      "%s link to %d function%s by %s", Av(KindName(call.abi.kind)), call.cnt(),
      call.cnt() == 1 ? "" : "s", call.names.empty() ? "address" : "name");
}

}  // namespace

absl::StatusOr<std::vector<uint8_t>> EncodeWords(
    absl::Span<const uint64_t> words, size_t width) {
  if (width == sizeof(uint64_t)) return EncodeAs<uint64_t>(words);
  if (width != sizeof(uint32_t)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("no kernel has words of %d bytes", width));
  }
  const absl::Status status = CheckFitsIn32Bits(words);
  if (!status.ok()) return status;
  return EncodeAs<uint32_t>(words);
}

absl::StatusOr<Link> CreateKprobeMultiLink(BpfSys& sys,
                                           const KprobeMultiCall& call) {
  return call.names.empty() ? CreateByAddress(sys, call)
                            : CreateByName(sys, call);
}

absl::Status KprobeMultiError(int err, const KprobeMultiCall& call) {
  return HintedError(err, Describe(call), kErrnoHints);
}

absl::StatusOr<Link> KprobeMultiFactory::MakeLink(
    absl::Span<const AttachPoint> points) {
  addrs_.clear();
  names_.clear();
  cookies_.clear();
  for (const AttachPoint& point : points) {
    cookies_.push_back(point.cookie);
    if (point.by_name) {
      names_.push_back(point.name);
    } else {
      addrs_.push_back(point.addr);
    }
  }
  KprobeMultiCall call;
  call.abi = abi_;
  call.prog_fd = prog_fd_;
  call.addrs = addrs_;
  call.names = names_;
  call.cookies = cookies_;
  return CreateKprobeMultiLink(sys_, call);
}

std::string KprobeMultiFactory::FunctionRefusal(int err) const {
  switch (err) {
    case EINVAL:  // up to Linux 6.12
    case ENOENT:  // from 6.18 on
      return "not a function that ftrace can trace, or its module is going; "
             "the "
             "resolution may be older than the last module load, or of another "
             "kernel";
    case ESRCH:
      return "no function of that name that ftrace can trace";
    case EBUSY:
      return "something else has patched the function, a livepatch for example";
    default:
      return ErrnoText(err);
  }
}

}  // namespace ksweep
