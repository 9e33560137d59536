#include <unistd.h>

#include <string>

#include "fmt/format.h"
#include "tests/bench/tools/tools.h"

namespace muster::bench {

v1::JobSpec SampleSpec(uint64_t number) {
  v1::JobSpec spec;
  spec.set_name(fmt::format("train-{}", number));
  spec.mutable_resources()->set_cpu_millis(1000);
  spec.mutable_resources()->set_memory_bytes(1 << 30);
  spec.mutable_time_limit()->set_seconds(3600);
  for (const char* arg : {"python3", "-m", "train", "--epochs", "10"}) {
    spec.mutable_command()->mutable_argv()->add_args(arg);
  }
  return spec;
}

void AwaitEndOfInput() {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

}  // namespace muster::bench
