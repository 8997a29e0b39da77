// BTF on a real kernel, compared with what libbpf's reader and a plain look at
// kallsyms say.

#include <bpf/btf.h>

#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "selftests/kernel/kernel_test_util.h"

namespace ksweep {
namespace {

struct FreeBtf {
  void operator()(btf* object) const { btf__free(object); }
};
using BtfPtr = std::unique_ptr<btf, FreeBtf>;

std::string FuncName(const btf* object, uint32_t id) {
  const btf_type* const type = btf__type_by_id(object, id);
  if (type == nullptr || !btf_is_func(type)) return "";
  return btf__name_by_offset(object, type->name_off);
}

// The addresses of each function of the core kernel, by name.
std::map<std::string, std::set<uint64_t>> CoreFunctions() {
  std::map<std::string, std::set<uint64_t>> functions;
  std::ifstream kallsyms("/proc/kallsyms");
  std::string line;
  while (std::getline(kallsyms, line)) {
    std::istringstream fields(line);
    std::string addr, type, name, module;
    fields >> addr >> type >> name >> module;
    if (module.empty() &&
        (type == "T" || type == "t" || type == "W" || type == "w")) {
      functions[name].insert(std::stoull(addr, nullptr, 16));
    }
  }
  return functions;
}

TEST(BtfHere, EveryIdOfTheCoreInOneSweep) {
  const BtfPtr core(btf__load_vmlinux_btf());
  ASSERT_NE(core, nullptr);
  std::vector<Request> requests;
  for (uint32_t id = 1; id < btf__type_cnt(core.get()); ++id) {
    if (!FuncName(core.get(), id).empty()) {
      requests.push_back(Request::BtfId(id));
    }
  }
  ASSERT_GT(requests.size(), 30000u);
  ResolveOptions options;
  options.missing = OnMissing::kReport;
  const absl::StatusOr<Resolution> r =
      Resolve(requests, KernelFiles(), options);
  ASSERT_TRUE(r.ok()) << r.status();

  std::set<uint64_t> omitted;
  for (const Omission& o : r->omissions()) omitted.insert(o.addr);
  std::vector<std::set<uint64_t>> found(requests.size());
  for (const Target& t : r->targets()) {
    for (uint32_t request : t.requests) found[request].insert(t.addr);
  }
  std::vector<const Unmatched*> unmatched(requests.size());
  for (const Unmatched& u : r->unmatched()) unmatched[u.request] = &u;

  const std::map<std::string, std::set<uint64_t>> functions = CoreFunctions();
  size_t none = 0, one = 0, several = 0, bad = 0;
  for (size_t i = 0; i < requests.size() && bad < 10; ++i) {
    const std::string name = FuncName(core.get(), requests[i].btf_id());
    const auto at = functions.find(name);
    const size_t cnt = at == functions.end() ? 0 : at->second.size();
    ++(cnt == 0 ? none : cnt == 1 ? one : several);
    bool as_expected;
    if (cnt == 1 && unmatched[i] == nullptr) {
      as_expected = found[i] == at->second;
    } else if (cnt == 0) {
      as_expected = unmatched[i] != nullptr &&
                    (unmatched[i]->reason == Reason::kNotFound ||
                     unmatched[i]->reason == Reason::kNotAFunction);
    } else {
      // Left out, each of them, and nothing taken instead.
      as_expected = unmatched[i] != nullptr && found[i].empty();
      for (uint64_t addr : at->second) {
        as_expected &=
            omitted.count(addr) != 0 || (cnt > 1 && r->FindByIp(addr).ok());
      }
    }
    if (as_expected) continue;
    ++bad;
    ADD_FAILURE() << name << " id " << requests[i].btf_id() << " has " << cnt
                  << " addresses, and not what was resolved";
  }
  std::printf(
      "%zu ids: %zu without function, %zu with one, %zu with several; "
      "%zu targets\n",
      requests.size(), none, one, several, r->targets().size());
  EXPECT_GT(one, 30000u);
  EXPECT_GT(several, 50u);
  EXPECT_GT(r->targets().size(), 30000u);

  // A filter list without addresses (before Linux 6.5) is joined by counting
  // the functions of a name, and BTF ids ask for some of these only.
  const bool counts_names = r->stats().filter_list == ListState::kNames;
  for (const FileStats& file : r->stats().files) {
    EXPECT_EQ(file.opens, 1u) << file.path;
    const bool read_again = counts_names && file.path == "proc/kallsyms";
    EXPECT_EQ(file.passes, read_again ? 2u : 1u) << file.path;
  }
  ASSERT_EQ(r->stats().files.size(), 3u);
  EXPECT_EQ(r->stats().files[2].path, "sys/kernel/btf/vmlinux");
}

TEST(BtfHere, EveryFunctionForTrampolinesHasItsId) {
  ResolveOptions options;
  options.kinds = {Kind::kFentryMulti};
  const Resolution r = testing::ResolveHere({"*"}, options);
  const BtfPtr core(btf__load_vmlinux_btf());
  ASSERT_NE(core, nullptr);
  std::map<std::string, BtfPtr> modules;
  std::map<std::string, std::set<uint32_t>> ids;
  size_t bad = 0;
  for (const Target& t : r.targets()) {
    const std::string module(t.module);
    const btf* object = core.get();
    if (!module.empty()) {
      BtfPtr& own = modules[module];
      if (own == nullptr) {
        own.reset(btf__load_module_btf(module.c_str(), core.get()));
      }
      object = own.get();
    }
    ASSERT_NE(object, nullptr) << module;
    const std::string name = FuncName(object, t.btf_id);
    bool called_so = name == t.name;
    for (std::string_view alias : t.aliases) called_so |= name == alias;
    const bool is_new = ids[module].insert(t.btf_id).second;
    if (called_so && is_new) continue;
    ASSERT_LT(++bad, 10u);
    ADD_FAILURE() << t.name << " has id " << t.btf_id << ", which is '" << name
                  << "'" << (is_new ? "" : ", twice");
  }
  for (const auto& [module, own] : ids) {
    std::printf("%zu of %s\n", own.size(),
                module.empty() ? "the core" : module.c_str());
  }
  EXPECT_GT(ids[""].size(), 30000u);
}

}  // namespace
}  // namespace ksweep
