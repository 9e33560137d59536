// Files of jobs, in both dialects.
#include "clients/cpp/jobfile.h"
#include "contract/validate.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = muster::fuzz::TextOf(data, size);
  static_cast<void>(muster::client::IsYamlStructure(text));
  static_cast<void>(muster::client::ParseJobFile("job.yaml", text));
  return 0;
}
