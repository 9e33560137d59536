#include "contract/slurm_program.h"

#include <string>
#include <string_view>

#include "contract/characters.h"
#include "contract/duration_text.h"
#include "contract/shell_environment.h"
#include "contract/slurm_options.h"
#include "fmt/format.h"

namespace muster::contract {
namespace {

constexpr size_t kMaxFileNameBytes = 4095;  // PATH_MAX less the NUL
constexpr int64_t kMaxTimeoutSeconds = 365 * int64_t{86400};

void CheckTimeout(const v1::JobSpec& spec, FieldErrors* errors) {
  if (!spec.slurm().has_timeout()) return;
  const auto& timeout = spec.slurm().timeout();
  if (timeout.seconds() < 1 || timeout.seconds() > kMaxTimeoutSeconds || timeout.nanos() != 0) {
    errors->Add("slurm.timeout", fmt::format("{} is out of range; use whole seconds, 1s to 365d",
                                             DurationText(timeout)));
  } else if (spec.has_time_limit() && timeout.seconds() >= spec.time_limit().seconds()) {
    errors->Add("slurm.timeout",
                fmt::format("{} is not shorter than the time limit of {}; make it so much shorter "
                            "that the command can write a checkpoint in between",
                            DurationText(timeout), DurationText(spec.time_limit())));
  }
}

void CheckFileName(std::string_view name, const std::string& pattern, FieldErrors* errors) {
  if (pattern.size() <= kMaxFileNameBytes && !HasControlCharacter(pattern) && IsUtf8(pattern))
    return;
  errors->Add(fmt::format("slurm.batch_script.{}", name),
              fmt::format("{} is not a usable file name; use at most {} bytes without control "
                          "characters",
                          Quoted(pattern), kMaxFileNameBytes));
}

}  // namespace

void CheckSlurmProgram(const v1::JobSpec& spec, FieldErrors* errors) {
  CheckTimeout(spec, errors);
  if (spec.slurm().dependency().find(kAnyOf) != std::string::npos && !spec.image().empty()) {
    errors->Add("slurm.dependency",
                "a job with an image may have to wait for its conversion as well; use ',' in place "
                "of '?', or leave image out");
  }
  if (!spec.slurm().has_batch_script()) return;
  const v1::SlurmBatchScript& script = spec.slurm().batch_script();
  CheckFileName("output", script.output(), errors);
  CheckFileName("error", script.error(), errors);
  CheckFileName("input", script.input(), errors);
  CheckShellEnvironment(script, errors);
  if (!spec.command().has_script()) {
    errors->Add("slurm.batch_script", "needs a script; give command.script");
  }
}

}  // namespace muster::contract
