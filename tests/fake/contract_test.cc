// Tests the common contract of backends on a cluster in memory: no process, no file, no wait.
#include "tests/integration/backend/contract.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "contract/failures.h"
#include "fmt/format.h"
#include "tests/fake/backend.h"
#include "tests/fake/cluster.h"

namespace muster::driver {
namespace {

using fake::Program;
using fake::TrueEnd;

// Describes a program of the contract's tests, by its script: what it writes and how it ends.
struct Script {
  const char* text;
  const char* output;
  TrueEnd end = {};
};
constexpr Script kScripts[] = {
    {"true", ""},
    {"echo hello", "hello\n"},
    {"echo once", "once\n"},
    {"echo released", "released\n"},
    {"echo never", "never\n"},
    {"cat made-by-setup", "ready\n"},
    {"exit 3", "", {TrueEnd::Kind::kExit, 3}},
    {"echo once; exit 4", "once\n", {TrueEnd::Kind::kExit, 4}},
    {"printf 'no newline'; exit 3", "no newline", {TrueEnd::Kind::kExit, 3}},
    {"kill -SEGV $$", "", {TrueEnd::Kind::kSignal, 11}},
};

Program NotStarted(v1::Failure failure) {
  return {.end = {TrueEnd::Kind::kNotStarted}, .failure = std::move(failure)};
}

Program ProgramOfWords(const google::protobuf::RepeatedPtrField<std::string>& words) {
  if (words[0] == "/usr/bin/printf") {
    Program program;
    for (int i = 2; i < words.size(); ++i) program.output += "[" + words[i] + "]";
    return program;
  }
  if (words[0] == "python3") {
    std::string every_byte;
    for (int byte = 0; byte < 256; ++byte) every_byte += static_cast<char>(byte);
    Program program;
    for (int i = 0; i < 1000; ++i) program.output += every_byte;
    return program;
  }
  return NotStarted(contract::MakeFailure(v1::FAILURE_CODE_PROGRAM_NOT_STARTED,
                                          v1::FAILURE_CLASS_CONFIG,
                                          {.subject = words[0],
                                           .meaning = "there is no such program",
                                           .phase = v1::FAILURE_PHASE_COMMAND}));
}

class Scripts : public fake::Owner {
 public:
  Program ProgramOf(const agent::v1::Assignment& run, uint32_t rank) override {
    const v1::JobSpec& spec = run.spec();
    if (spec.setup() == "exit 7") {
      return NotStarted(
          contract::OwnEnd(contract::ExitWithCode(7), {.phase = v1::FAILURE_PHASE_SETUP}));
    }
    if (spec.command().has_argv()) return ProgramOfWords(spec.command().argv().args());
    const std::string& text = spec.command().script();
    const auto starts = [&](const char* words) { return text.starts_with(words); };
    if (starts("printf '[%s]'")) return {.output = "[" + spec.env().at("EVIL") + "]"};
    if (starts("exec 2>/dev/null; trap 'echo bye"))
      return {.duration = absl::InfiniteDuration(), .output = "ready\n", .last_words = "bye\n"};
    if (starts("exec sleep")) return {.duration = absl::InfiniteDuration()};
    if (starts("echo $NODE_RANK of"))
      return {.output = fmt::format("setup {0}\n{0} of {1}\n", rank, spec.nodes())};
    if (starts("if [ $NODE_RANK = 1 ]; then exit 5")) {
      if (rank == 1) return {.end = {TrueEnd::Kind::kExit, 5}};
      return {.duration = absl::Seconds(300)};
    }
    const auto* script = std::find_if(std::begin(kScripts), std::end(kScripts),
                                      [&](const Script& known) { return text == known.text; });
    if (script != std::end(kScripts)) return {.end = script->end, .output = script->output};
    ADD_FAILURE() << "no program is known that does: " << text;
    return {};
  }
};

// Looks at runs ten seconds after the call before, so that nobody has to wait.
class LateBackend : public fake::FakeBackend {
 public:
  LateBackend(fake::Cluster* cluster, sim::Loop* loop) : FakeBackend(cluster), loop_(*loop) {}

  agents::ObserveOutcome Observe(const std::vector<agents::RunHandle>& runs) override {
    loop_.RunUntil(loop_.now() + absl::Seconds(10), [] { return false; });
    return FakeBackend::Observe(runs);
  }

 private:
  sim::Loop& loop_;
};

class FakePlace : public Place {
 public:
  agents::Backend& backend() override { return *backend_; }
  void Restart(const std::vector<agents::RunHandle>& journal) override {
    backend_ = std::make_unique<LateBackend>(&cluster_, &loop_);
    ASSERT_TRUE(backend_->Adopt(journal).ok());
  }
  bool IsGone(const TestRun& run) override {
    const std::string& key = run.handle.run_key;
    return cluster_.Find(key) == nullptr && !cluster_.files().HasAnyIn("/runs/" + key);
  }

 private:
  sim::Loop loop_;
  Scripts scripts_;
  fake::Cluster cluster_{&loop_, &scripts_, {}};
  std::unique_ptr<LateBackend> backend_ = std::make_unique<LateBackend>(&cluster_, &loop_);
};

std::unique_ptr<Place> InMemory() { return std::make_unique<FakePlace>(); }

}  // namespace

INSTANTIATE_TEST_SUITE_P(InMemory, BackendContractTest, testing::Values(&InMemory));
INSTANTIATE_TEST_SUITE_P(InMemory, GangContractTest, testing::Values(&InMemory));

}  // namespace muster::driver
