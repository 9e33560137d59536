#include "agents/machines/run_records.h"

#include "agents/machines/record.h"

namespace muster::machines {
namespace {

// Raised when an older program could misread the file.
constexpr int64_t kVersion = 1;
// Leaves room for the other fields of a record.
constexpr size_t kMaxTextBytes = 1024;

std::optional<Record> DecodeVersioned(std::string_view bytes) {
  std::optional<Record> record = Record::Decode(bytes);
  if (record.has_value() && record->Number("version") != kVersion) return std::nullopt;
  return record;
}

Record NewRecord() {
  Record record;
  record.Add("version", kVersion);
  return record;
}

void AddProcess(const ProcessId& process, Record* record) {
  record->Add("pid", process.pid);
  record->Add("start_ticks", static_cast<int64_t>(process.start_ticks));
  record->Add("boot_id", process.boot_id);
}

ProcessId ProcessOf(const Record& record) {
  return {.pid = static_cast<pid_t>(record.Number("pid")),
          .start_ticks = static_cast<uint64_t>(record.Number("start_ticks")),
          .boot_id = record.Text("boot_id")};
}

}  // namespace

std::string RunSpec::Encode() const {
  Record record = NewRecord();
  record.Add("run_key", run_key);
  record.Add("priority", priority);
  record.Add("order", static_cast<int64_t>(order));
  record.Add("cores", cores);
  record.Add("memory_bytes", static_cast<int64_t>(memory_bytes));
  record.Add("gpu_type", gpu_type);
  record.Add("gpu_millis", gpu_millis);
  record.Add("memory_limit_bytes", static_cast<int64_t>(memory_limit_bytes));
  record.Add("core_limit", core_limit);
  record.Add("working_directory", working_directory);
  record.Add("container_tool", container_tool);
  record.Add("image", image);
  for (const std::string& mount : mounts) record.Add("mount", mount);
  if (user.IsOther()) record.Add("user", user.name);
  if (user.IsOther()) record.Add("user_directory", user.directory);
  if (user.IsOther()) record.Add("user_helper", user.helper);
  if (user.IsOther()) record.Add("user_supervisor", user.supervisor);
  record.Add("time_limit_ms", time_limit_ms);
  record.Add("grace_ms", grace_ms);
  if (!lease_file.empty()) record.Add("lease_file", lease_file);
  for (const std::string& word : setup_words) record.Add("setup_word", word);
  for (const std::string& word : command_words) record.Add("command_word", word);
  for (const std::string& variable : environment) record.Add("env", variable);
  for (const std::string& secret : secrets) record.Add("secret", secret);
  for (const std::string& secret : secret_files) record.Add("secret_file", secret);
  record.Add("setup_script", setup_script);
  record.Add("command_script", command_script);
  return record.Encode();
}

std::optional<RunSpec> RunSpec::Decode(std::string_view bytes) {
  const std::optional<Record> record = DecodeVersioned(bytes);
  if (!record.has_value()) return std::nullopt;
  RunSpec spec;
  spec.run_key = record->Text("run_key");
  spec.priority = static_cast<int32_t>(record->Number("priority"));
  spec.order = static_cast<uint64_t>(record->Number("order"));
  spec.cores = static_cast<uint32_t>(record->Number("cores"));
  spec.memory_bytes = static_cast<uint64_t>(record->Number("memory_bytes"));
  spec.gpu_type = record->Text("gpu_type");
  // A spec of an older agent has whole GPUs.
  spec.gpu_millis = static_cast<uint32_t>(
      record->Has("gpu_millis") ? record->Number("gpu_millis") : record->Number("gpus") * 1000);
  spec.memory_limit_bytes = static_cast<uint64_t>(record->Number("memory_limit_bytes"));
  spec.core_limit = static_cast<uint32_t>(record->Number("core_limit"));
  spec.working_directory = record->Text("working_directory");
  spec.container_tool = record->Text("container_tool");
  spec.image = record->Text("image");
  spec.mounts = record->All("mount");
  spec.user = {.name = record->Text("user"),
               .directory = record->Text("user_directory"),
               .helper = record->Text("user_helper"),
               .supervisor = record->Text("user_supervisor")};
  spec.time_limit_ms = record->Number("time_limit_ms");
  spec.grace_ms = record->Number("grace_ms");
  spec.lease_file = record->Text("lease_file");
  spec.setup_words = record->All("setup_word");
  spec.command_words = record->All("command_word");
  spec.environment = record->All("env");
  spec.secrets = record->All("secret");
  spec.secret_files = record->All("secret_file");
  spec.setup_script = record->Text("setup_script");
  spec.command_script = record->Text("command_script");
  return spec;
}

std::string Claim::Encode() const {
  Record record = NewRecord();
  AddProcess(owner, &record);
  record.Add("devices", devices);
  if (closed_us != 0) record.Add("closed_us", closed_us);
  return record.Encode();
}

std::optional<Claim> Claim::Decode(std::string_view bytes) {
  const std::optional<Record> record = DecodeVersioned(bytes);
  if (!record.has_value()) return std::nullopt;
  return Claim{.owner = ProcessOf(*record),
               .devices = record->Text("devices"),
               .closed_us = record->Number("closed_us")};
}

std::optional<ExitRecord> Claim::End() const {
  if (closed_us == 0) return std::nullopt;
  return ExitRecord{.phase = ExitRecord::Phase::kQueue,
                    .end = ExitRecord::End::kNothingRan,
                    .cause = ExitRecord::Cause::kCanceled,
                    .end_us = closed_us};
}

std::string Started::Encode() const {
  Record record = NewRecord();
  AddProcess(process, &record);
  record.Add("time_us", time_us);
  return record.Encode();
}

std::optional<Started> Started::Decode(std::string_view bytes) {
  const std::optional<Record> record = DecodeVersioned(bytes);
  if (!record.has_value()) return std::nullopt;
  return Started{.process = ProcessOf(*record), .time_us = record->Number("time_us")};
}

std::string ExitRecord::Encode() const {
  Record record = NewRecord();
  record.Add("phase", static_cast<int>(phase));
  record.Add("end", static_cast<int>(end));
  record.Add("cause", static_cast<int>(cause));
  record.Add("status", status);
  record.Add("step", static_cast<int>(step));
  record.Add("error", error);
  record.Add("path", std::string_view(path).substr(0, kMaxTextBytes));
  record.Add("start_us", start_us);
  record.Add("end_us", end_us);
  record.Add("pid", pid);
  record.Add("left_behind", left_behind ? 1 : 0);
  record.Add("sender", std::string_view(sender).substr(0, kMaxTextBytes));
  record.Add("oom_kills", oom_kills);
  record.Add("memory_limit_bytes", static_cast<int64_t>(memory_limit_bytes));
  if (is_counted) {
    record.Add("user_cpu_us", user_cpu_us);
    record.Add("system_cpu_us", system_cpu_us);
    record.Add("max_rss_bytes", static_cast<int64_t>(max_rss_bytes));
  }
  record.Add("unlimited", std::string_view(unlimited).substr(0, kMaxTextBytes));
  return record.Encode();
}

std::optional<ExitRecord> ExitRecord::Decode(std::string_view bytes) {
  const std::optional<Record> record = DecodeVersioned(bytes);
  if (!record.has_value()) return std::nullopt;
  ExitRecord exit;
  exit.phase = static_cast<Phase>(record->Number("phase"));
  exit.end = static_cast<End>(record->Number("end"));
  exit.cause = static_cast<Cause>(record->Number("cause"));
  exit.status = static_cast<int>(record->Number("status"));
  exit.step = static_cast<Step>(record->Number("step"));
  exit.error = static_cast<int>(record->Number("error"));
  exit.path = record->Text("path");
  exit.start_us = record->Number("start_us");
  exit.end_us = record->Number("end_us");
  exit.pid = record->Number("pid");
  exit.left_behind = record->Number("left_behind") != 0;
  exit.sender = record->Text("sender");
  exit.oom_kills = record->Number("oom_kills");
  exit.memory_limit_bytes = static_cast<uint64_t>(record->Number("memory_limit_bytes"));
  exit.is_counted = record->Has("user_cpu_us");
  exit.user_cpu_us = record->Number("user_cpu_us");
  exit.system_cpu_us = record->Number("system_cpu_us");
  exit.max_rss_bytes = static_cast<uint64_t>(record->Number("max_rss_bytes"));
  exit.unlimited = record->Text("unlimited");
  return exit;
}

}  // namespace muster::machines
