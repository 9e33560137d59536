// The rules of a field are in its comment in the proto, and are those that the checks enforce.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <initializer_list>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "broker/app/limits.h"
#include "contract/file_tree.h"
#include "contract/filter.h"
#include "contract/job_order.h"
#include "contract/kubernetes_options.h"
#include "contract/retry.h"
#include "contract/roles.h"
#include "contract/slurm_container.h"
#include "contract/slurm_options.h"
#include "contract/task_array.h"
#include "contract/text.h"
#include "contract/validate.h"

namespace muster::contract {
namespace {

std::string ReadProto(const std::string& name) {
  std::ifstream file(fmt::format("{}/{}.proto", MUSTER_PROTO_FOLDER, name));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the comment above the line of the proto that matches, on one line.
std::string CommentAbove(const std::string& proto, const std::string& line) {
  std::smatch found;
  const std::regex pattern("((?:^ *//.*\n)+) *" + line, std::regex::multiline);
  if (!std::regex_search(proto, found, pattern)) return "";
  return std::regex_replace(found[1].str(), std::regex("\n? *// ?"), " ");
}

// Returns the comment of a message, or of a field, "Role.nodes".
std::string CommentOf(const std::string& proto, const std::string& name) {
  const size_t dot = name.find('.');
  if (dot == name.npos) return CommentAbove(proto, "message " + name + " \\{");
  const size_t begin = proto.find(fmt::format("message {} {{", name.substr(0, dot)));
  if (begin == proto.npos) return "";
  const std::string body = proto.substr(begin, proto.find("\n}\n", begin) - begin);
  return CommentAbove(body, "[^=\n/]*\\b" + name.substr(dot + 1) + " = ");
}

struct Rule {
  std::string of;
  std::string says;
};

void ExpectAll(const std::string& proto, std::initializer_list<Rule> rules) {
  for (const Rule& rule : rules) {
    const std::string comment = CommentOf(proto, rule.of);
    EXPECT_NE(comment.find(rule.says), std::string::npos)
        << rule.of << " does not say \"" << rule.says << "\": " << comment;
  }
}

TEST(ProtoRules, OfAJobSpecAreInTheCommentsOfItsFields) {
  const auto number = [](auto value) { return fmt::format(" {}", value); };
  ExpectAll(ReadProto("job_spec"),
            {
                {"JobSpec", fmt::format("{} MiB", kMaxSpecBytes >> 20)},
                {"JobSpec.name", fmt::format("1 to {} bytes", kMaxNameBytes)},
                {"JobSpec.nodes", fmt::format("1 to {}", kMaxNodes)},
                {"JobSpec.env", number(kMaxEnvVars)},
                {"JobSpec.env", number(kMaxArgBytes)},
                {"JobSpec.env", number(kMaxArrayTaskId)},
                {"JobSpec.env", number(kMaxArrayTasks)},
                {"JobSpec.labels", number(kMaxLabels)},
                {"JobSpec.inputs", number(kMaxInputs)},
                {"JobSpec.roles", fmt::format("1 to {}", kMaxRoles)},
                {"JobSpec.roles", fmt::format("{} ranks", kMaxNodes)},
                {"Argv.args", fmt::format("1 to {}", kMaxArgs)},
                {"Argv.args", number(kMaxArgBytes)},
                {"SlurmOptions", number(kMaxOptionBytes)},
                {"SlurmOptions.comment", number(kMaxOptionBytes)},
                {"SlurmOptions.dependency", fmt::format("{} KiB", kMaxListBytes >> 10)},
                {"SlurmOptions.gres", fmt::format("{} KiB", kMaxListBytes >> 10)},
                {"SlurmOptions.tasks_per_node", number(kMaxTasksPerNode)},
                {"SlurmOptions.nice", number(kMaxNice)},
                {"SlurmOptions.extra_options", number(kMaxExtraOptions)},
                {"SlurmContainer.name", number(kMaxContainerNameBytes)},
                {"SlurmContainer.env", number(kMaxContainerEnv)},
                {"SlurmContainer.env", number(kMaxVariableNameBytes)},
                {"RetryPolicy.max_runs", number(kMaxRuns)},
                {"RetryPolicy.exit_codes", number(kMaxRetryExitCodes)},
                {"KubernetesOptions.node_selector", number(kMaxKubernetesItems)},
                {"KubernetesOptions.tolerations", number(kMaxKubernetesItems)},
                {"KubernetesOptions.required_nodes", number(kMaxKubernetesItems)},
                {"KubernetesOptions.preferred_nodes", number(kMaxKubernetesItems)},
                {"KubernetesOptions.volumes", number(kMaxKubernetesVolumes)},
                {"KubernetesOptions.labels", number(kMaxKubernetesItems)},
                {"KubernetesOptions.annotations", number(kMaxKubernetesItems)},
                {"KubernetesOptions.image_pull_secrets", number(kMaxKubernetesPullSecrets)},
                {"KubernetesNodeRequirement.values", number(kMaxKubernetesValues)},
                {"KubernetesNodePreference.weight", number(kMaxKubernetesWeight)},
                {"KubernetesSecurityContext.add_capabilities", number(kMaxKubernetesCapabilities)},
            });
}

TEST(ProtoRules, OfAFileTreeAreInTheCommentsOfItsFields) {
  ExpectAll(ReadProto("file_tree"),
            {
                {"FileTree", fmt::format("{} MiB", kMaxTreeBytes >> 20)},
                {"FileTree.entries", fmt::format("{}", kMaxTreeEntries)},
                {"FileTreeEntry.path", fmt::format("{} bytes", kMaxTreePathBytes)},
                {"FileTreeEntry.path", fmt::format("{} in each part", kMaxTreeNameBytes)},
                {"FileTreeEntry.link_target", fmt::format("{} bytes", kMaxTreePathBytes)},
            });
}

TEST(ProtoRules, OfTheServicesAreInTheCommentsOfTheirRequests) {
  const std::string jobs = fmt::format("1 to {}", broker::kMaxJobsPerCall);
  const std::string page = fmt::format("1 to {0}; a larger number means {0}. Default {1}",
                                       broker::kMaxPageSize, broker::kDefaultPageSize);
  const std::string reason = fmt::format("up to {} bytes", broker::kMaxReasonBytes);
  ExpectAll(ReadProto("jobs_service"),
            {
                {"SubmitJobRequest.request_id", fmt::format("{} bytes", kMaxRequestIdBytes)},
                {"SubmitJobRequest.request_id", "without control characters"},
                {"SubmitJobsRequest.requests", jobs},
                {"ListJobsRequest.page_size", page},
                {"ListJobsRequest.filter", fmt::format("{} bytes", kMaxFilterBytes)},
                {"ListJobsRequest.filter", fmt::format("{} pairs", kMaxFilterDepth - 1)},
                {"ListTransitionsRequest.page_size", page},
                {"UpdateJobRequest.priority", "-1000 to 1000"},
                {"UpdateJobRequest.reason", reason},
                {"CancelJobsRequest.job_ids", jobs},
                {"CancelJobsRequest.reason", reason},
                {"HoldJobsRequest.job_ids", jobs},
                {"HoldJobsRequest.reason", reason},
                {"ReleaseJobsRequest.job_ids", jobs},
                {"ReleaseJobsRequest.reason", reason},
                {"RerunJobsRequest.job_ids", jobs},
                {"WatchJobsRequest.job_ids", fmt::format("up to {}", broker::kMaxJobsPerCall)},
            });
  ExpectAll(ReadProto("clusters_service"), {{"ListClustersRequest.page_size", page}});
  ExpectAll(ReadProto("files_service"),
            {
                {"FindMissingFilesRequest.sha256", fmt::format("{}", kMaxDigestsPerRequest)},
                {"UploadFilesRequest.chunk", fmt::format("{}", kMaxFileChunkBytes)},
                {"DownloadFileResponse.chunk", fmt::format("{}", kMaxFileChunkBytes)},
                {"FetchFilesResponse.chunk", fmt::format("{}", kMaxFileChunkBytes)},
            });
}

// Returns the names between two texts, "a, b, c".
std::set<std::string> NamesBetween(std::string_view text, std::string_view begin,
                                   std::string_view end) {
  size_t from = text.find(begin);
  if (from == text.npos) return {};
  from += begin.size();
  const std::string list(text.substr(from, text.find(end, from) - from));
  const std::regex name("[a-z_]+(\\.KEY)?(?=, | and |\\.|$)");
  std::set<std::string> names;
  for (auto at = std::sregex_iterator(list.begin(), list.end(), name); at != std::sregex_iterator();
       ++at) {
    names.insert(at->str());
  }
  return names;
}

TEST(ProtoRules, TheCommentOfTheFilterListsItsFields) {
  const std::string comment = CommentOf(ReadProto("jobs_service"), "ListJobsRequest.filter");
  const std::string known(ToStd(ParseFilter("?", absl::UnixEpoch()).status().message()));
  const std::set<std::string> fields = NamesBetween(known, "expected ", ", NOT or");
  ASSERT_THAT(fields, testing::Contains("label.KEY"));
  EXPECT_EQ(NamesBetween(comment, "Fields: ", " Operators:"), fields);
  const std::set<std::string> absent = NamesBetween(comment, "\"has it\", for ", " A comparison");
  for (const std::string& field : fields) {
    const bool may_be_absent = ParseFilter(field + ":*", absl::UnixEpoch()).ok();
    EXPECT_EQ(absent.contains(field), may_be_absent) << field;
  }
}

TEST(ProtoRules, TheExamplesInTheCommentOfTheFilterAreTaken) {
  const std::string comment = CommentOf(ReadProto("jobs_service"), "ListJobsRequest.filter");
  const std::regex quoted("`([^`]*)`");
  int comparisons = 0;
  for (auto at = std::sregex_iterator(comment.begin(), comment.end(), quoted);
       at != std::sregex_iterator(); ++at) {
    const std::string example = (*at)[1].str();
    if (example.find(' ') == std::string::npos || example.starts_with("FIELD")) continue;
    EXPECT_TRUE(ParseFilter(example, absl::UnixEpoch()).ok()) << example;
    ++comparisons;
  }
  EXPECT_GE(comparisons, 2);
}

TEST(ProtoRules, TheCommentOfTheOrderListsItsFields) {
  const std::string comment = CommentOf(ReadProto("jobs_service"), "ListJobsRequest.order_by");
  const std::string known(ToStd(ParseJobOrder("?").status().message()));
  const std::regex name("[a-z]+(_time)?");
  const auto names = [&name](std::string_view text, std::string_view begin, std::string_view end) {
    const size_t from = text.find(begin) + begin.size();
    const std::string list(text.substr(from, text.find(end, from) - from));
    std::set<std::string> found(std::sregex_token_iterator(list.begin(), list.end(), name), {});
    found.erase("or");
    return found;
  };
  const std::set<std::string> fields = names(comment, "the reverse: ", ". Default");
  EXPECT_EQ(fields, names(known, "use ", ", with"));
  for (const std::string& field : fields) EXPECT_TRUE(ParseJobOrder(field + " desc").ok()) << field;
}

TEST(ProtoRules, TheCommentOfExtraOptionsListsWhatIsTaken) {
  const std::string comment = CommentOf(ReadProto("job_spec"), "SlurmOptions.extra_options");
  const size_t lists = comment.find("With a value: ");
  const size_t end = comment.find(" These options accept only one value: ");
  ASSERT_NE(end, comment.npos) << comment;
  const std::string listed = comment.substr(lists, end - lists);
  const std::regex word("[a-z][a-z-]*(?=[,.])");
  std::set<std::string, std::less<>> words = {"time", "chdir"};
  for (auto at = std::sregex_iterator(listed.begin(), listed.end(), word);
       at != std::sregex_iterator(); ++at) {
    words.insert(at->str());
    EXPECT_TRUE(IsExtraOption(at->str())) << at->str();
  }
  for (const std::string_view option : ExtraOptionNames())
    EXPECT_TRUE(words.contains(option)) << option;
}

}  // namespace
}  // namespace muster::contract
