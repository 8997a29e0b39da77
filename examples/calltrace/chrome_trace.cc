#include "calltrace/chrome_trace.h"

#include <string_view>

#include "absl/strings/str_format.h"
#include "calltrace/text.h"
#include "common/json.h"

namespace examples {
namespace {

void WriteMicroseconds(std::string_view key, uint64_t ns, JsonWriter* json) {
  json->Key(key).Decimal(static_cast<double>(ns) / 1000, 3);
}

// An idle thread has the id 0 on each CPU; here each needs a track of its own,
// and process 0 has no other thread.
uint64_t TrackOf(const CallTree& tree) {
  return tree.thread >> 32 ? (tree.thread >> 32) - 1 : tree.thread;
}

void WriteIds(const CallTree& tree, JsonWriter* json) {
  json->Key("pid").Number(tree.pid);
  json->Key("tid").Number(TrackOf(tree));
}

std::string NameEvent(const CallTree& tree, std::string_view what) {
  JsonWriter json;
  json.BeginObject();
  json.Key("ph").String("M");
  WriteIds(tree, &json);
  json.Key("name").String(what);
  json.Key("args").BeginObject();
  json.Key("name").String(tree.comm);
  json.EndObject();
  json.EndObject();
  return json.text();
}

std::string CallEvent(const CallTree& tree, const Call& call,
                      std::string_view name) {
  JsonWriter json;
  json.BeginObject();
  json.Key("ph").String("X");
  WriteIds(tree, &json);
  WriteMicroseconds("ts", call.start_ns, &json);
  WriteMicroseconds("dur", call.duration_ns(), &json);
  json.Key("name").String(name);
  json.Key("args").BeginObject();
  switch (call.end) {
    case CallEnd::kReturned:
      json.Key("ret").String(ReturnText(call.ret));
      json.Key("cpu").Number(call.cpu);
      break;
    case CallEnd::kMissed:
      json.Key("end").String("missed");
      break;
    case CallEnd::kRunning:
      json.Key("end").String("still running");
      break;
  }
  json.EndObject();
  json.EndObject();
  return json.text();
}

}  // namespace

std::string ChromeTrace::Begin() {
  return "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
}

void ChromeTrace::AppendThread(const CallTree& tree, std::string* out) {
  std::string& comm = comms_[tree.thread];
  if (comm == tree.comm) return;
  comm = tree.comm;
  absl::StrAppendFormat(out, "%s\n%s", first_ ? "" : ",",
                        NameEvent(tree, "thread_name"));
  first_ = false;
  if (tree.thread != tree.pid) return;
  absl::StrAppendFormat(out, ",\n%s", NameEvent(tree, "process_name"));
}

std::string ChromeTrace::Add(const CallTree& tree, const FunctionNames& names) {
  std::string text;
  AppendThread(tree, &text);
  for (const Call& call : tree.calls) {
    absl::StrAppendFormat(&text, "%s\n%s", first_ ? "" : ",",
                          CallEvent(tree, call, names[call.slot]));
    first_ = false;
  }
  return text;
}

std::string ChromeTrace::End(uint64_t lost) {
  return absl::StrFormat("\n],\"otherData\":{\"lost_calls\":\"%d\"}}\n", lost);
}

}  // namespace examples
