#include "resolve_json.h"

#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "common/json.h"
#include "common/left_outs.h"

namespace examples {
namespace {

using ksweep::Kind;

std::string_view ListStateName(ksweep::ListState state) {
  switch (state) {
    case ksweep::ListState::kNotNeeded:
      return "not needed";
    case ksweep::ListState::kAddresses:
      return "addresses";
    case ksweep::ListState::kNames:
      return "names";
    case ksweep::ListState::kMissing:
      return "missing";
  }
  return "unknown";
}

// The writers of one resolution's parts.
class Report {
 public:
  explicit Report(const ksweep::Resolution& resolution)
      : resolution_(resolution) {
    for (const ksweep::Request& request : resolution.requests()) {
      requests_.push_back(request.ToString());
    }
  }

  std::string Write(const absl::Status& status) {
    json_.BeginObject();
    Rows("targets", resolution_.targets(), &Report::WriteTarget);
    Rows("omissions", resolution_.omissions(), &Report::WriteOmission);
    Rows("unmatched", resolution_.unmatched(), &Report::WriteUnmatched);
    json_.Line();
    json_.Key("stats");
    WriteStats(resolution_.stats());
    if (!status.ok()) {
      json_.Line();
      Text("error", {status.message().data(), status.message().size()});
    }
    json_.EndObject();
    return json_.text() + "\n";
  }

 private:
  template <typename Row>
  void Rows(std::string_view key, const std::vector<Row>& rows,
            void (Report::*write)(const Row&)) {
    json_.Line();
    json_.Key(key).BeginArray();
    for (const Row& row : rows) {
      json_.Line();
      json_.BeginObject();
      (this->*write)(row);
      json_.EndObject();
    }
    json_.EndArray();
  }

  void Text(std::string_view key, std::string_view text) {
    json_.Key(key).String(text);
  }

  void Number(std::string_view key, uint64_t number) {
    json_.Key(key).Number(number);
  }

  void Bool(std::string_view key, bool value) { json_.Key(key).Bool(value); }

  void Addr(std::string_view key, uint64_t addr) { json_.Key(key).Addr(addr); }

  void Module(std::string_view module) {
    if (!module.empty()) return Text("module", module);
    json_.Key("module").Null();
  }

  void Names(std::string_view key, absl::Span<const std::string_view> names) {
    json_.Key(key).BeginArray();
    for (const std::string_view name : names) json_.String(name);
    json_.EndArray();
  }

  void WriteTarget(const ksweep::Target& target) {
    Text("name", target.name);
    Module(target.module);
    Addr("addr", target.addr);
    Text("type", {&target.type, 1});
    Bool("clone", target.clone);
    json_.Key("btf_id");
    target.btf_id == 0 ? json_.Null() : json_.Number(target.btf_id);
    Names("aliases", target.aliases);
    Number("cookie", target.cookie);
    json_.Key("requests").BeginArray();
    for (const uint32_t request : target.requests) {
      json_.String(requests_[request]);
    }
    json_.EndArray();
    Bool("untested", target.untested);
    WriteKinds(target);
  }

  void WriteKinds(const ksweep::Target& target) {
    json_.Key("kinds").BeginArray();
    for (int i = 0; i < ksweep::kKindCnt; ++i) {
      const Kind kind = static_cast<Kind>(i);
      if (target.kinds.Has(kind)) json_.String(ksweep::KindName(kind));
    }
    json_.EndArray();
    json_.Key("misfits").BeginArray();
    for (const ksweep::Misfit& misfit : target.misfits) {
      json_.BeginObject();
      Text("kind", ksweep::KindName(misfit.kind));
      Text("reason", ksweep::ReasonName(misfit.reason));
      Text("detail", misfit.detail);
      json_.EndObject();
    }
    json_.EndArray();
  }

  void WriteOmission(const ksweep::Omission& omission) {
    Text("name", omission.name);
    Module(omission.module);
    Addr("addr", omission.addr);
    Text("reason", ksweep::ReasonName(omission.reason));
    Text("detail", omission.detail);
    Text("request", requests_[omission.request]);
  }

  void WriteUnmatched(const ksweep::Unmatched& unmatched) {
    Text("request", requests_[unmatched.request]);
    Text("reason", ksweep::ReasonName(unmatched.reason));
    Text("detail", unmatched.detail);
    Names("candidates", unmatched.candidates);
  }

  void WriteUnjoined(const ksweep::Unjoined& unjoined) {
    Text("name", unjoined.name);
    Module(unjoined.module);
    Addr("location", unjoined.location);
  }

  void WriteStats(const ksweep::ResolveStats& stats) {
    json_.BeginObject();
    Text("addresses", AddressStateName(stats.addresses));
    Text("filter_list", ListStateName(stats.filter_list));
    Text("blacklist", ListStateName(stats.blacklist));
    Number("lines", stats.lines);
    Number("malformed", stats.malformed);
    json_.Key("malformed_lines").BeginArray();
    for (const uint64_t line : stats.malformed_lines) json_.Number(line);
    json_.EndArray();
    json_.Key("opens").BeginObject();
    for (const ksweep::FileStats& file : stats.files) {
      Number(file.path, file.opens);
    }
    json_.EndObject();
    Rows("unjoined", stats.unjoined, &Report::WriteUnjoined);
    const std::vector<std::string_view> notes(stats.notes.begin(),
                                              stats.notes.end());
    Names("notes", notes);
    Number("read_ns", stats.read_ns);
    Number("match_ns", stats.match_ns);
    Number("join_ns", stats.join_ns);
    Number("btf_ns", stats.btf_ns);
    Number("total_ns", stats.total_ns);
    json_.EndObject();
  }

  const ksweep::Resolution& resolution_;
  std::vector<std::string> requests_;
  JsonWriter json_;
};

}  // namespace

std::string ResolutionJson(const ksweep::Resolution& resolution,
                           const absl::Status& status) {
  return Report(resolution).Write(status);
}

}  // namespace examples
