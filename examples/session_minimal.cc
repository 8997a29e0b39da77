// The mean time of the calls of functions, in as few lines as it takes.
//
//   $ sudo session_minimal 'vfs_*'
//   79 functions, 45908 calls, 49.3 us each
#include <err.h>
#include <unistd.h>

#include <cstdio>

#include "ksweep/attach.h"
#include "ksweep/session.h"
#include "session_minimal.ctx.skel.h"
#include "session_minimal.skel.h"

void Check(const absl::Status& status) {
  if (!status.ok()) errx(1, "%s", status.ToString().c_str());
}

int main(int argc, char** argv) {
  auto request = ksweep::Request::Parse(argc > 1 ? argv[1] : "vfs_*");
  Check(request.status());
  ksweep::ResolveOptions options;
  options.kinds = {ksweep::Kind::kKprobeSession};
  auto functions = ksweep::Resolve({*request}, {}, options);
  Check(functions.status());
  auto bpf =
      ksweep::OpenSessionSkeleton<session_minimal_bpf, session_minimal_ctx_bpf>(
          session_minimal_bpf__create_skeleton);
  Check(bpf.status());
  bpf_program* prog = (*bpf)->progs.both_ends;
  Check(ksweep::PrepareProgram(prog, ksweep::Kind::kKprobeSession));
  if (session_minimal_bpf__load(bpf->get()) != 0) return 1;  // libbpf says why
  auto attachment = ksweep::Attach(*functions, prog);
  Check(attachment.status());
  sleep(3);
  const auto calls = (*bpf)->bss->calls, ns = (*bpf)->bss->nanoseconds;
  printf("%zu functions, %llu calls, %.1f us each\n",
         functions->targets().size(), calls, calls == 0 ? 0 : ns / 1e3 / calls);
}
