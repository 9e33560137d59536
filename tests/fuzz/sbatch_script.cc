// Scripts for sbatch, and the values of their options.
#include "clients/cpp/slurm/sbatch_script.h"

#include "clients/cpp/slurm/sbatch_array.h"
#include "clients/cpp/slurm/sbatch_environment.h"
#include "clients/cpp/slurm/sbatch_values.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace muster::client::slurm;
  const std::string_view text = muster::fuzz::TextOf(data, size);
  static_cast<void>(ReadSbatchDirectives(text));
  static_cast<void>(SplitDirective(text));
  static_cast<void>(ReadSbatch({"job.sh"}, {}, text));
  static_cast<void>(ReadExportFile(text));
  static_cast<void>(ParseArray(text));
  static_cast<void>(ParseSbatchTime(text));
  static_cast<void>(ParseSbatchMemory(text));
  static_cast<void>(ParseNodeRange(text));
  static_cast<void>(ParseMailTypes(text));
  static_cast<void>(ParseSbatchGpus(text));
  static_cast<void>(ParseGres(text));
  return 0;
}
