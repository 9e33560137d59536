#include "clients/cpp/skypilot/task_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "clients/cpp/depends_on.h"
#include "clients/cpp/skypilot/duplicates.h"
#include "clients/cpp/skypilot/ignored.h"
#include "clients/cpp/skypilot/tabs.h"
#include "clients/cpp/skypilot/task.h"
#include "clients/cpp/skypilot/values.h"
#include "clients/cpp/spec_check.h"
#include "clients/cpp/yaml_reader.h"
#include "contract/characters.h"

namespace muster::client::skypilot {
namespace {

// The first document of several, if it is no task.
struct Header {
  bool is_group = false;
  std::string name;
};

bool Has(const YAML::Node& node, std::string_view name) {
  return std::any_of(node.begin(), node.end(), [&](const auto& entry) {
    return entry.first.IsScalar() && entry.first.Scalar() == name;
  });
}

bool IsTaskHeader(const YAML::Node& document) {
  return document.IsMap() &&
         (Has(document, "execution") || (document.size() == 1 && Has(document, "name")));
}

Header ReadHeader(YamlReader& in, Ignored& ignored, const YAML::Node& document) {
  Header header;
  const YamlValue root{document, ""};
  const Fields fields =
      ReadFields(in, root, {"name", "execution", "primary_tasks", "termination_delay"});
  const YamlValue* name = Find(fields, "name");
  if (name != nullptr) ReadText(in, *name, &header.name);
  const YamlValue* execution = Find(fields, "execution");
  std::string how = "serial";
  if (execution != nullptr && ReadText(in, *execution, &how) && how != "serial" &&
      how != "parallel") {
    in.Problem(*execution, fmt::format("{} is neither serial nor parallel", contract::Quoted(how)));
  }
  header.is_group = how == "parallel";
  if (header.is_group && name == nullptr) in.Problem(root, "a group of tasks needs a name");
  if (const YamlValue* primary = Find(fields, "primary_tasks")) {
    in.Problem(*primary,
               "jobs do not end each other here; programs that do are the roles of one "
               "Muster job, of which some have leads: true");
  }
  if (const YamlValue* delay = Find(fields, "termination_delay")) ignored.Field(in, *delay);
  return header;
}

class TaskFileReader {
 public:
  TaskFileReader(std::string_view file, std::string_view text, const JobFileOptions& options)
      : file_(file), text_(text), options_(options), ignored_(options.strict) {}

  absl::StatusOr<JobFile> Read(const std::vector<YAML::Node>& all) {
    std::vector<YAML::Node> documents;
    for (const YAML::Node& document : all) {
      if (!document.IsNull()) documents.push_back(document);
    }
    if (documents.empty()) return absl::InvalidArgumentError(file_ + ": holds no task");
    Header header;
    // A lone document is a task, though it has only a name.
    const bool has_header = IsTaskHeader(documents.front()) &&
                            (documents.size() > 1 || Has(documents.front(), "execution"));
    size_t first = 0;
    if (has_header) {
      YamlReader in(file_, text_, MergeKeys::kRead);
      header = ReadHeader(in, ignored_, documents.front());
      if (documents.size() == 1) in.Problem({documents.front(), ""}, "is followed by no task");
      if (!in.status().ok()) return in.status();
      first = 1;
    }
    const size_t count = documents.size() - first;
    if (count > kMaxJobsInFile) {
      return absl::InvalidArgumentError(
          fmt::format("{}:{}: more than {} jobs in a file; submit several files", file_,
                      documents[first + kMaxJobsInFile].Mark().line + 1, kMaxJobsInFile));
    }
    for (size_t i = first; i < documents.size(); ++i) {
      if (absl::Status status = Add(header, documents[i]); !status.ok()) return status;
    }
    jobs_.notes = ignored_.Notes(file_);
    return std::move(jobs_);
  }

 private:
  absl::Status Add(const Header& header, const YAML::Node& document) {
    YamlReader in(file_, text_, MergeKeys::kRead);
    const size_t job = jobs_.specs.size();
    std::vector<v1::JobSpec> alternatives = ReadTask(in, ignored_, document, options_, job, &jobs_);
    const v1::JobSpec& spec = alternatives.front();
    if (header.is_group) {
      const YamlValue root{document, ""};
      if (spec.name().empty()) in.Problem(root, "a task of a group needs a name");
      ignored_.Remark(in, {document, "execution"},
                      "the tasks of the group become jobs of their own, which start as each fits "
                      "and do not find each other by name");
    }
    for (v1::JobSpec& one : alternatives) {
      if (one.name().empty()) one.set_name(header.name);
      if (!header.is_group) DependOnLast(jobs_.specs, &one);
    }
    if (in.status().ok()) CheckSpec(spec, &in);
    if (!in.status().ok()) return in.status();
    const std::vector<ExpectedKind> expected = ignored_.TakeExpected(job);
    jobs_.expected_kinds.insert(jobs_.expected_kinds.end(), expected.begin(), expected.end());
    jobs_.specs.push_back(spec);
    if (alternatives.size() > 1) jobs_.alternatives[job] = std::move(alternatives);
    jobs_.places.Add(in.Places());
    return absl::OkStatus();
  }

  const std::string file_;
  const std::string_view text_;
  const JobFileOptions& options_;
  Ignored ignored_;
  JobFile jobs_;
};

}  // namespace

absl::StatusOr<JobFile> ReadTasks(std::string_view file, std::string_view text,
                                  const std::vector<YAML::Node>& documents,
                                  const JobFileOptions& options) {
  if (absl::Status status = CheckDuplicates(file, text); !status.ok()) return status;
  if (absl::Status status = CheckTabs(file, text); !status.ok()) return status;
  return TaskFileReader(file, text, options).Read(documents);
}

}  // namespace muster::client::skypilot
