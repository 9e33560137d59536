// Stands in for libFuzzer where there is none: gives a target each file of its corpus, and
// broken forms of it that are the same in every run. A target that finds a fault aborts.
//
//   fuzz_TARGET DIRECTORY
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace muster::fuzz {
namespace {

// Each file is a second or less of work for every target.
constexpr int kBrokenForms = 60;
constexpr int kMaxChanges = 8;

void Give(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

std::string Broken(std::string input, std::minstd_rand& random) {
  const auto below = [&random](size_t bound) { return random() % bound; };
  const auto changes = 1 + below(kMaxChanges);
  for (size_t i = 0; i < changes && !input.empty(); ++i) {
    const size_t place = below(input.size());
    switch (below(4)) {
      case 0:
        input[place] = static_cast<char>(below(256));
        break;
      case 1:
        input.erase(place, 1 + below(16));
        break;
      case 2:
        input.insert(place, input.substr(below(input.size()), 1 + below(32)));
        break;
      default:
        input.resize(place);
    }
  }
  return input;
}

int Main(const char* directory) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(file), {}};
    std::minstd_rand random(static_cast<unsigned>(input.size()) + 1);
    Give(input);
    for (int i = 0; i < kBrokenForms; ++i) Give(Broken(input, random));
    ++files;
  }
  std::printf("%d files\n", files);
  return files > 0 ? 0 : 1;
}

}  // namespace
}  // namespace muster::fuzz

int main(int argc, char** argv) {
  if (argc == 2) return muster::fuzz::Main(argv[1]);
  std::fputs("usage: fuzz_TARGET DIRECTORY\n", stderr);
  return 2;
}
