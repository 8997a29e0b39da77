#include "calltrace/outputs.h"

#include <errno.h>
#include <string.h>

#include <utility>

#include "absl/strings/str_format.h"
#include "calltrace/flame_graph.h"
#include "calltrace/text.h"

namespace examples {

absl::StatusOr<OutputFile> OutputFile::Create(const std::string& path) {
  OutputFile output;
  output.path_ = path;
  if (path.empty()) return output;
  output.file_.reset(fopen(path.c_str(), "we"));
  if (output.is_open()) return output;
  return absl::FailedPreconditionError(
      absl::StrFormat("cannot create %s: %s", path, strerror(errno)));
}

void OutputFile::Write(std::string_view text) {
  if (is_open()) fwrite(text.data(), 1, text.size(), file_.get());
}

absl::Status OutputFile::Close() {
  if (!is_open()) return absl::OkStatus();
  const bool failed = ferror(file_.get()) != 0;
  if (fclose(file_.release()) == 0 && !failed) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrFormat("cannot write %s: %s", path_, strerror(errno)));
}

absl::StatusOr<Outputs> Outputs::Create(const OutputPaths& paths) {
  Outputs outputs;
  for (const auto& [path, file] :
       {std::pair(&paths.perfetto, &outputs.perfetto_),
        std::pair(&paths.folded, &outputs.folded_),
        std::pair(&paths.svg, &outputs.svg_)}) {
    absl::StatusOr<OutputFile> created = OutputFile::Create(*path);
    if (!created.ok()) return created.status();
    *file = *std::move(created);
  }
  outputs.perfetto_.Write(outputs.chrome_trace_.Begin());
  return outputs;
}

void Outputs::Add(const CallTree& tree, const FunctionNames& names) {
  if (is_text()) AppendTreeText(tree, names, &text_);
  if (perfetto_.is_open()) perfetto_.Write(chrome_trace_.Add(tree, names));
  if (folded_.is_open() || svg_.is_open()) profile_.Add(tree, names);
}

absl::Status Outputs::Finish(std::string_view title, uint64_t lost) {
  perfetto_.Write(chrome_trace_.End(lost));
  if (folded_.is_open()) folded_.Write(FoldedText(profile_));
  if (svg_.is_open()) svg_.Write(FlameGraphSvg(profile_, title));
  absl::Status status = perfetto_.Close();
  status.Update(folded_.Close());
  status.Update(svg_.Close());
  return status;
}

}  // namespace examples
