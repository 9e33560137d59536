#include "tests/integration/slurm/test_cluster.h"

#include <stdlib.h>

#include "agents/hosts/ssh_host.h"
#include "fmt/format.h"
#include "gtest/gtest.h"

namespace muster::slurm {
namespace {

std::string ClusterDirectory(const std::string& directory) { return directory + "/cluster"; }

}  // namespace

TestCluster::TestCluster(const std::string& options)
    : is_over_ssh_(getenv("MUSTER_TEST_OVER_SSH") != nullptr),
      is_over_rest_(getenv("MUSTER_TEST_OVER_REST") != nullptr),
      has_accounting_(options.find("--no-dbd") == std::string::npos) {
  char name[] = "/tmp/muster-slurm-XXXXXX";
  // The helper makes it: root's daemons and the user meet there.
  directory_ =
      Root().Run(fmt::format("d=$(mktemp -d {}) && chmod 755 $d && printf %s $d", name)).output;
  const std::string doors =
      fmt::format("{}{}", is_over_rest_ ? "" : "--no-restd ", is_over_ssh_ ? "" : "--no-sshd ");
  Control("up", doors + options);
  const RootHelper::Result made =
      Root().Run(fmt::format("install -d -m 700 -o {} {}", kTestUser, runs()));
  EXPECT_EQ(made.status, 0) << made.output;
}

TestCluster::~TestCluster() {
  Control("down", "--purge");
  Root().Run("rm -rf " + directory_);
}

void TestCluster::Control(const std::string& verb, const std::string& arguments) {
  const std::string command =
      fmt::format("{}/tests/support/slurm-cluster.sh {} {} {}", MUSTER_SOURCE_DIR, verb,
                  ClusterDirectory(directory_), arguments);
  const RootHelper::Result result = Root().Run(command);
  EXPECT_EQ(result.status, 0) << command << "\n" << result.output;
}

std::string TestCluster::AsRoot(const std::string& command) {
  const RootHelper::Result result =
      Root().Run(fmt::format("SLURM_CONF={} {}", Config().slurm_conf, command));
  EXPECT_EQ(result.status, 0) << command << "\n" << result.output;
  return result.output;
}

SlurmConfig TestCluster::Config() const {
  SlurmConfig config;
  config.run_dir = runs();
  config.bin_dir = SlurmPrograms();
  config.slurm_conf = ClusterDirectory(directory_) + "/etc/slurm.conf";
  config.max_polls_per_minute = 0;
  config.observe_interval = absl::Milliseconds(200);
  config.record_interval = absl::Milliseconds(50);
  config.lookup_grace = absl::Seconds(3);
  config.absence_grace = absl::Seconds(5);
  config.record_grace = absl::Seconds(10);
  if (is_over_rest_) {
    config.rest_url = RestUrl();
    // Only accounting, and jobs, tell it.
    if (!has_accounting_) config.rest_cluster = "lab";
  }
  return config;
}

std::unique_ptr<agents::Backend> TestCluster::MakeBackend(const SlurmConfig& config) const {
  SlurmConfig its_config = config;
  std::unique_ptr<hosts::Host> host;
  if (is_over_ssh_) {
    host = MakeSshHost();
    its_config.user_on_host = kTestUser;
  }
  std::unique_ptr<agents::Backend> backend =
      CreateSlurmBackend(its_config, directory_, std::move(host));
  const absl::Status status = backend->Probe();
  EXPECT_TRUE(status.ok()) << status;
  return backend;
}

std::string TestCluster::RestUrl() const {
  const std::string env = ReadWhole(ClusterDirectory(directory_) + "/env.sh");
  const std::string name = "SLURMLAB_RESTD_URL=";
  const size_t begin = env.find(name);
  EXPECT_NE(begin, std::string::npos) << "the cluster has no slurmrestd";
  if (begin == std::string::npos) return {};
  return env.substr(begin + name.size(), env.find('\n', begin) - begin - name.size());
}

std::unique_ptr<hosts::Host> TestCluster::MakeSshHost() const {
  const std::string ssh = ClusterDirectory(directory_) + "/ssh";
  const std::string key = directory_ + "/login_key";
  Root().Run(fmt::format("install -m 600 -o {} {}/id {}", kTestUser, ssh, key));
  const RootHelper::Result line = Root().Run("cat " + ssh + "/known_hosts");
  hosts::SshConfig config;
  // The line is "[127.0.0.1]:PORT TYPE KEY".
  absl::StatusOr<hosts::LoginHost> host =
      hosts::ParseLoginHost(line.output.substr(0, line.output.find(' ')));
  EXPECT_TRUE(host.ok()) << host.status();
  config.hosts = {{"127.0.0.1", 1}, *host};
  config.user = kTestUser;
  config.key_file = key;
  config.known_hosts_file = ssh + "/known_hosts";
  absl::StatusOr<std::unique_ptr<hosts::SshHost>> made = hosts::SshHost::Create(config);
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

}  // namespace muster::slurm
