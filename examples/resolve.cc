// Says which kernel functions some requests are, and why not the others.
// Attaches nothing.
//
//   $ resolve --report_missing vfs_read 'tcp_v4_re*' veth:veth_xmit '!*_cb'
//         'ip_mis*' tcp_small_queue_check
//   ADDRESS           TYPE  MODULE  FUNCTION
//   ffffffff9c5b6590  T     -       vfs_read
//   ffffffff9cda6d90  t     -       tcp_v4_reqsk_destructor
//   ffffffff9cdaaf40  t     -       tcp_v4_reqsk_send_ack
//   ffffffffc080d4c0  t     veth    veth_xmit
//
//   Denied, 1 left out:
//     ffffffff9cda7100  -  tcp_v4_restore_cb  !*_cb
//
//   InitSection, 1 left out:
//     ffffffff9e739ce0  -  ip_misc_proc_init  freed after boot
//
//   2 requests without a target:
//     ip_mis*                InitSection  freed after boot; candidates:
//         ip_misc_proc_init
//     tcp_small_queue_check  NotFound     candidates:
//         tcp_small_queue_check.isra.0
//
//   4 targets, 2 left out, 2 requests without a target; addresses full
//   read 24.8 ms, match 9.5 ms, join 12.5 ms, total 46.8 ms for 222,511 lines
//       of kallsyms

#include "ksweep/resolve.h"

#include <string>
#include <string_view>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_format.h"
#include "common/flags.h"
#include "common/left_outs.h"
#include "common/output.h"
#include "common/requests.h"
#include "common/table.h"
#include "resolve_json.h"

namespace examples {
namespace {

constexpr std::string_view kUsage =
    R"(resolve [FLAG…] [--] REQUEST…
Says which kernel functions the requests are, and why not the others. Attaches
nothing. Flags and requests in any order.

Requests:
  vfs_read              that name: every instance, core kernel and modules
  tcp_*  vfs_?  [a-c]*  a glob on the whole name
  nf_tables:nft_*       a module part, itself a glob; vmlinux:x is the core only
  !pattern              leaves these out
  0xffffffff81234560    the function at that address
  syscall:openat        the entry point of a system call
  btf:1234              a function by its BTF id; btf:nf_tables:130001 of a module
  takes:sk_buff         functions with a pointer to that struct among their
                        parameters; takes:sk_buff@1 as the first

Exit code: 0; 1 if it failed, or an exact name has no target; 2 for wrong usage.)";

// What is special about a target.
std::string Remarks(const ksweep::Target& target) {
  std::string remarks;
  if (target.clone) remarks += "  clone";
  if (target.untested) remarks += "  untested";
  if (!target.aliases.empty()) remarks += "  also";
  for (const std::string_view alias : target.aliases) {
    remarks.append(" ").append(Printable(alias));
  }
  for (const ksweep::Misfit& misfit : target.misfits) {
    absl::StrAppendFormat(&remarks, "  not by %s: %s",
                          ksweep::KindName(misfit.kind),
                          ksweep::ReasonName(misfit.reason));
  }
  return remarks;
}

void AppendTargets(const ksweep::Resolution& resolution, std::string* out) {
  Table table("llll");
  table.AddRow({"ADDRESS", "TYPE", "MODULE", "FUNCTION"});
  for (const ksweep::Target& target : resolution.targets()) {
    table.AddRow({AddrText(target.addr), std::string(1, target.type),
                  ModuleText(target.module),
                  Printable(target.name) + Remarks(target)});
  }
  if (!resolution.targets().empty()) table.AppendTo(out);
}

void AppendSummary(const ksweep::Resolution& resolution, std::string* out) {
  const ksweep::ResolveStats& stats = resolution.stats();
  absl::StrAppendFormat(
      out, "\n%s, %s left out, %s without a target; addresses %s\n",
      Count(resolution.targets().size(), "target"),
      WithCommas(resolution.omissions().size()),
      Count(resolution.unmatched().size(), "request"),
      AddressStateName(stats.addresses));
  std::string btf;
  if (stats.btf_ns != 0) {
    btf = absl::StrFormat("BTF %s, ", Milliseconds(stats.btf_ns));
  }
  absl::StrAppendFormat(
      out, "read %s, match %s, join %s, %stotal %s for %s of kallsyms\n",
      Milliseconds(stats.read_ns), Milliseconds(stats.match_ns),
      Milliseconds(stats.join_ns), btf, Milliseconds(stats.total_ns),
      Count(stats.lines, "line"));
  AppendNotes(stats, out);
}

std::string ResolutionText(const ksweep::Resolution& resolution) {
  std::string text;
  AppendTargets(resolution, &text);
  AppendLeftOuts(resolution, absl::GetFlag(FLAGS_verbose), &text);
  AppendSummary(resolution, &text);
  return text;
}

int Run(Query query) {
  const absl::StatusOr<ksweep::Resolution> resolution =
      ksweep::Resolve(std::move(query.requests), query.files, query.options);
  const absl::Status status = CheckResolution(resolution);

  bool written = true;
  if (absl::GetFlag(FLAGS_json)) {
    written = WriteOut(ResolutionJson(
        resolution.ok() ? *resolution : ksweep::Resolution(), status));
  } else if (resolution.ok()) {
    written = WriteOut(ResolutionText(*resolution));
  }
  if (!status.ok()) PrintError(status);
  return written && status.ok() ? kExitOk : kExitFailed;
}

}  // namespace
}  // namespace examples

int main(int argc, char** argv) {
  const std::vector<std::string> args =
      examples::ParseFlagsOrExit(argc, argv, "resolve", examples::kUsage);
  absl::StatusOr<examples::Query> query = examples::ReadQuery(args);
  if (!query.ok()) return examples::WrongUsage(query.status());
  return examples::Run(*std::move(query));
}
