#include "lib/resolve/btf_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "lib/base/abseil.h"

namespace ksweep {
namespace {

class Planner {
 public:
  Planner(absl::Span<const Request> requests, BtfStore* store, Arena* text)
      : requests_(requests), store_(store), text_(text) {}

  BtfPlan Run() {
    for (uint32_t i = 0; i < requests_.size(); ++i) {
      if (requests_[i].deny()) continue;
      if (requests_[i].form() == Request::Form::kBtfId) AddId(i);
      if (requests_[i].form() == Request::Form::kTakes) AddTakes(i);
    }
    return std::move(plan_);
  }

 private:
  void AddId(uint32_t request);
  void AddTakes(uint32_t request);
  void AddTakesOf(std::string_view module, uint32_t request);
  void FindModules();
  uint16_t ObjectOf(std::string_view module);
  void Refuse(uint32_t request, Reason reason, std::string detail) {
    plan_.refusals[request] = {reason, text_->Copy(detail)};
  }

  const absl::Span<const Request> requests_;
  BtfStore* const store_;
  Arena* const text_;
  BtfPlan plan_;
  bool has_modules_ = false;
  std::vector<std::string> all_modules_;
};

uint16_t Planner::ObjectOf(std::string_view module) {
  const auto found =
      std::find(plan_.modules.begin(), plan_.modules.end(), module);
  const auto object = static_cast<uint16_t>(found - plan_.modules.begin());
  if (found == plan_.modules.end()) plan_.modules.emplace_back(module);
  return object;
}

void Planner::AddId(uint32_t request) {
  const uint32_t id = requests_[request].btf_id();
  const std::string& module = requests_[request].owner().module_pattern();
  const absl::StatusOr<const Btf*> btf = store_->Get(module);
  if (!btf.ok()) {
    plan_.refusals[request] = ExplainNoBtf(module, store_, text_);
    return;
  }
  const BtfFunc* const func = (*btf)->FindFunc(id);
  if (func != nullptr) {
    plan_.names.push_back({func->name, id, request, ObjectOf(module)});
  } else if (id < (*btf)->first_id()) {
    Refuse(
        request, Reason::kNoSuchBtfId,
        absl::StrFormat("ids of %s start at %d", module, (*btf)->first_id()));
  } else {
    Refuse(request, Reason::kNoSuchBtfId, (*btf)->Describe(id));
  }
}

// A module that has BTF now. What cannot be listed is only said: most requests
// are about the core.
void Planner::FindModules() {
  if (std::exchange(has_modules_, true)) return;
  absl::StatusOr<std::vector<std::string>> modules = store_->ListModules();
  if (modules.ok()) {
    all_modules_ = *std::move(modules);
  } else {
    plan_.notes.push_back(absl::StrFormat("BTF of modules is left out (%s)",
                                          modules.status().message()));
  }
  for (const std::string& module : all_modules_) {
    const absl::StatusOr<const Btf*> btf = store_->Get(module);
    if (btf.ok()) continue;
    plan_.notes.push_back(absl::StrFormat("BTF of module %s is left out (%s)",
                                          module, btf.status().message()));
  }
}

void Planner::AddTakes(uint32_t request) {
  if (!store_->Get("").ok()) {
    plan_.refusals[request] = ExplainNoBtf("", store_, text_);
    return;
  }
  FindModules();
  const size_t before = plan_.names.size();
  AddTakesOf("", request);
  for (const std::string& module : all_modules_) AddTakesOf(module, request);
  if (plan_.names.size() == before) {
    Refuse(request, Reason::kNotFound,
           "no function in BTF takes a pointer to it there");
  }
}

void Planner::AddTakesOf(std::string_view module, uint32_t request) {
  const absl::StatusOr<const Btf*> btf = store_->Get(module);
  if (!btf.ok()) return;
  const uint16_t object = ObjectOf(module);
  for (const BtfFunc& func : (*btf)->funcs()) {
    if (TakesStruct(**btf, func, requests_[request])) {
      plan_.names.push_back({func.name, func.id, request, object});
    }
  }
}

}  // namespace

Refusal ExplainNoBtf(std::string_view module, BtfStore* store, Arena* text) {
  const absl::Status core = store->Get("").status();
  if (module.empty() || !core.ok()) {
    return {Reason::kNoBtf, text->Copy(std::string(core.message()))};
  }
  const absl::Status status = store->Get(module).status();
  return {Reason::kNoModuleBtf,
          text->Copy(absl::StrFormat("%s: %s", Av(module), status.message()))};
}

bool TakesStruct(const Btf& btf, const BtfFunc& func, const Request& request) {
  const uint32_t cnt = btf.param_cnt(func);
  const auto only = static_cast<uint32_t>(request.parameter());
  for (uint32_t i = 0; i < cnt; ++i) {
    if (only != 0 && i + 1 != only) continue;
    if (btf.PointedStruct(btf.ParamType(func, i)) == request.name()) {
      return true;
    }
  }
  return false;
}

BtfPlan PlanBtf(absl::Span<const Request> requests, BtfStore* store,
                Arena* text) {
  return Planner(requests, store, text).Run();
}

}  // namespace ksweep
