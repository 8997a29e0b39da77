// The ways that are compared, all of them with the same answer.

#ifndef KSWEEP_SELFTESTS_BENCH_WAYS_H_
#define KSWEEP_SELFTESTS_BENCH_WAYS_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"
#include "ksweep/request.h"
#include "selftests/bench/reference/reference.h"
#include "selftests/bench/workload.h"

namespace ksweep::bench {

// One question to one text.
struct Question {
  const Source* source = nullptr;
  std::string label;
  std::vector<std::string> wanted;  // names or globs
  std::vector<Request> requests;    // the same
  bool globs = false;

  std::vector<std::string_view> views() const {
    return {wanted.begin(), wanted.end()};
  }
};

struct Way {
  enum class Role {
    kFloor,   // reads, finds nothing
    kPart,    // a part of ksweep's work
    kKsweep,  // all of it, judged by the targets
    kOther,
  };
  std::string label;
  Role role = Role::kOther;
  // Runs once. The answer goes to `answer`, if that is not null; taking it out
  // of ksweep's own form is then no part of the work.
  std::function<void(std::vector<Found>* answer)> run;
  bool answers = true;  // else it finds nothing
  bool reads = true;    // else it does not even read
};

// The ways to answer `question`, which has to outlive them, the floor first.
std::vector<Way> WaysFor(const Question& question);

// Answers as they are compared: sorted; of symbols that are no functions only
// that the name exists.
void Normalize(std::vector<Found>* answer);
bool SameAnswer(const std::vector<Found>& a, const std::vector<Found>& b);

// What ksweep's answer itself takes: bytes of the rows.
size_t AnswerBytes(const Question& question);

}  // namespace ksweep::bench

#endif  // KSWEEP_SELFTESTS_BENCH_WAYS_H_
