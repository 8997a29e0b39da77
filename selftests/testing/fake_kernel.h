// A kernel root made of text.

#ifndef KSWEEP_SELFTESTS_TESTING_FAKE_KERNEL_H_
#define KSWEEP_SELFTESTS_TESTING_FAKE_KERNEL_H_

#include <map>
#include <string>
#include <string_view>

#include "ksweep/kernel_files.h"

namespace ksweep::testing {

// A temporary folder with the lists it was given; removed at the end. A list
// that was not given does not exist.
//
//   FakeKernel kernel;
//   kernel.Write(KernelFile::kKallsyms, "ffffffff81000000 T vfs_q\n");
//   Resolve(…, kernel.files());
class FakeKernel {
 public:
  FakeKernel();
  FakeKernel(const FakeKernel&) = delete;
  FakeKernel& operator=(const FakeKernel&) = delete;
  ~FakeKernel();

  FakeKernel& Write(KernelFile file, std::string_view text);
  // `path` below the root.
  FakeKernel& WritePath(std::string_view path, std::string_view text);
  // The BTF of a module, or of the core kernel if `module` is empty.
  FakeKernel& WriteBtf(std::string_view module, std::string_view bytes);
  // Unpacks the .gz files of selftests/data/`name`.
  FakeKernel& Unpack(const std::string& name);

  const std::string& root() const { return root_; }
  KernelFiles files() const { return KernelFiles(root_); }
  std::string Path(KernelFile file) const;

 private:
  std::string root_;
};

// The folder selftests/data.
std::string DataFolder();

// The text of a .gz file.
std::string Gunzip(const std::string& path);

// Counts, with the kernel's own means, how often files are opened.
class OpenCounter {
 public:
  OpenCounter();
  OpenCounter(const OpenCounter&) = delete;
  OpenCounter& operator=(const OpenCounter&) = delete;
  ~OpenCounter();

  // Counts from now on. The file has to exist.
  void Watch(const std::string& path);
  // Opens of `path` since it is watched.
  int Opens(const std::string& path);

 private:
  void Collect();

  int fd_;
  std::map<std::string, int> watches_;
  std::map<int, int> opens_;
};

// Descriptors that this process has open.
int OpenDescriptors();

}  // namespace ksweep::testing

#endif  // KSWEEP_SELFTESTS_TESTING_FAKE_KERNEL_H_
