// The BTF reader: no input makes it read outside, and what it accepts keeps its
// promises.

#include <algorithm>
#include <memory>

#include "lib/source/btf.h"
#include "lib/source/btf_elf.h"
#include "selftests/fuzz/fuzz_target.h"
#include "selftests/testing/btf_builder.h"

namespace ksweep {
namespace {

using testing::BtfBuilder;

// The first byte says what the rest is: raw BTF, an ELF file, or split BTF of
// the base below.
enum class Form : uint8_t { kRaw, kSplit, kElf };
constexpr int kFormCnt = 3;

BtfBuilder MakeBase() {
  BtfBuilder base;
  const uint32_t skb = base.Ptr(base.Const(base.Struct("sk_buff", 232)));
  base.Func("ip_rcv", base.Int("int", 4), {skb, skb});
  base.Func("printk", base.Int("int", 4), {skb, 0});
  return base;
}

const Btf& Base() {
  static const auto* const base =
      new std::unique_ptr<Btf>(*Btf::Parse(MakeBase().Build()));
  return **base;
}

void CheckFunc(const Btf& btf, const BtfFunc& func) {
  FuzzCheck(btf.FindFunc(func.id) == &func, "an id finds its function");
  FuzzCheck(func.id >= btf.first_id() && func.id < btf.end_id(),
            "ids are the object's own");
  FuzzCheck(func.name.find('\0') == std::string_view::npos, "a name ends");
  const BtfPrototype proto = btf.Prototype(func);
  const uint32_t cnt = btf.param_cnt(func);
  FuzzCheck(proto.arg_cnt + (proto.varargs ? 1 : 0) == cnt,
            "every parameter is counted");
  for (uint32_t i = 0; i < cnt; ++i) {
    const uint32_t type = btf.ParamType(func, i);
    FuzzCheck(type < btf.end_id(), "a type id is one");
    const bool pointer = btf.ValueOf(type).kind == BtfValue::Kind::kPointer;
    FuzzCheck(pointer || btf.PointedStruct(type).empty(),
              "only pointers point");
  }
}

void CheckBtf(std::string bytes, const Btf* base) {
  const absl::StatusOr<std::unique_ptr<Btf>> btf =
      Btf::Parse(std::move(bytes), base);
  if (!btf.ok()) {
    FuzzCheck(absl::IsInvalidArgument(btf.status()), "damage is an error");
    return;
  }
  uint32_t last = 0;
  for (const BtfFunc& func : (*btf)->funcs()) {
    FuzzCheck(func.id > last, "ids ascend");
    last = func.id;
    CheckFunc(**btf, func);
  }
  for (uint32_t id = 0; id < (*btf)->end_id() + 2; ++id) {
    FuzzCheck(!(*btf)->Describe(id).empty(), "every id can be described");
  }
}

}  // namespace

std::string MakeFuzzInput(std::mt19937* rng) {
  const auto pick = [rng](uint32_t cnt) {
    return static_cast<uint32_t>((*rng)() % cnt);
  };
  const auto form = static_cast<Form>(pick(kFormCnt));
  const BtfBuilder base = MakeBase();
  BtfBuilder btf =
      form == Form::kSplit ? BtfBuilder::SplitOf(base) : BtfBuilder();
  for (uint32_t cnt = 1 + pick(12); cnt > 0; --cnt) {
    // Sometimes an id that is not there yet, or never.
    const auto any = [&] { return pick(btf.next_id() + 2); };
    switch (pick(10)) {
      case 0:
        btf.Int("int", 1u << pick(5));
        break;
      case 1:
        btf.Ptr(any());
        break;
      case 2:
        btf.Struct("s", pick(40));
        break;
      case 3:
        btf.Union("u", pick(40));
        break;
      case 4:
        btf.Typedef("t", any());
        break;
      case 5:
        btf.Array(any(), 3);
        break;
      case 6:
        btf.Raw(pick(40), pick(22), pick(4), any(), {any(), any()});
        break;
      case 7:
        btf.Enum64("e");
        break;
      default:
        btf.Func("f", any(), {any(), any()});
    }
  }
  std::string bytes = btf.Build();
  if (form == Form::kElf) bytes = testing::BtfInElf(bytes);
  return std::string(1, static_cast<char>(form)) + bytes;
}

}  // namespace ksweep

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace ksweep;
  if (size == 0) return 0;
  const std::string_view bytes = FuzzText(data + 1, size - 1);
  switch (static_cast<Form>(data[0] % kFormCnt)) {
    case Form::kRaw:
      CheckBtf(std::string(bytes), nullptr);
      break;
    case Form::kSplit:
      CheckBtf(std::string(bytes), &Base());
      break;
    case Form::kElf: {
      const absl::StatusOr<std::string> section = BtfOfElf(bytes);
      if (section.ok()) CheckBtf(*section, nullptr);
      break;
    }
  }
  return 0;
}
