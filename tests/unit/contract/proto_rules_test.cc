// The rules of a field are in its comment in the proto, and are those that the checks enforce.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "contract/file_tree.h"
#include "contract/kubernetes_options.h"
#include "contract/retry.h"
#include "contract/roles.h"
#include "contract/slurm_container.h"
#include "contract/slurm_options.h"
#include "contract/task_array.h"
#include "contract/validate.h"

namespace muster::contract {
namespace {

std::string ReadProto(const std::string& name) {
  std::ifstream file(fmt::format("{}/{}.proto", MUSTER_PROTO_FOLDER, name));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The comment above the line of the proto that matches, on one line.
std::string CommentAbove(const std::string& proto, const std::string& line) {
  std::smatch found;
  const std::regex pattern("((?:^ *//.*\n)+) *" + line, std::regex::multiline);
  if (!std::regex_search(proto, found, pattern)) return "";
  return std::regex_replace(found[1].str(), std::regex("\n? *// ?"), " ");
}

// The comment of a message, or of a field, "Role.nodes".
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

TEST(ProtoRules, OfAJobSpecAreInTheCommentsOfItsFields) {
  const std::string proto = ReadProto("job_spec");
  const auto number = [](auto value) { return fmt::format(" {}", value); };
  const Rule rules[] = {
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
  };
  for (const Rule& rule : rules) {
    const std::string comment = CommentOf(proto, rule.of);
    EXPECT_NE(comment.find(rule.says), std::string::npos)
        << rule.of << " does not say \"" << rule.says << "\": " << comment;
  }
}

TEST(ProtoRules, OfAFileTreeAreInTheCommentsOfItsFields) {
  const std::string proto = ReadProto("file_tree");
  const Rule rules[] = {
      {"FileTree", fmt::format("{} MiB", kMaxTreeBytes >> 20)},
      {"FileTree.entries", fmt::format("{}", kMaxTreeEntries)},
      {"FileTreeEntry.path", fmt::format("{} bytes", kMaxTreePathBytes)},
      {"FileTreeEntry.path", fmt::format("{} in each part", kMaxTreeNameBytes)},
      {"FileTreeEntry.link_target", fmt::format("{} bytes", kMaxTreePathBytes)},
  };
  for (const Rule& rule : rules) {
    const std::string comment = CommentOf(proto, rule.of);
    EXPECT_NE(comment.find(rule.says), std::string::npos)
        << rule.of << " does not say \"" << rule.says << "\": " << comment;
  }
}

TEST(ProtoRules, TheCommentOfExtraOptionsListsWhatIsTaken) {
  const std::string comment = CommentOf(ReadProto("job_spec"), "SlurmOptions.extra_options");
  const size_t lists = comment.find("With a value: ");
  const size_t end = comment.find(" With one value only: ");
  ASSERT_NE(end, comment.npos) << comment;
  const std::string listed = comment.substr(lists, end - lists);
  const std::regex word("[a-z][a-z-]*(?=[,.])");
  std::set<std::string, std::less<>> words = {"mem", "time", "chdir"};
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
