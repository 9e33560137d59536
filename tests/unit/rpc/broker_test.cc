// Tests the broker as a whole: where it listens, who connects, how it stops.
#include <gmock/gmock.h>
#include <grpcpp/health_check_service_interface.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <future>

#include "absl/time/clock.h"
#include "broker/logs/archive.h"
#include "broker/rpc/listen_address.h"
#include "broker/rpc/users.h"
#include "tests/unit/rpc/harness.h"

namespace muster::broker {
namespace {

using ::testing::HasSubstr;

TEST(ListenAddress, OnlyThisMachineIsAllowed) {
  EXPECT_EQ(*CheckListenAddress("127.0.0.1:7070"), "127.0.0.1:7070");
  EXPECT_EQ(*CheckListenAddress("127.9.9.9:0"), "127.9.9.9:0");
  EXPECT_EQ(*CheckListenAddress("[::1]:7070"), "[::1]:7070");
  EXPECT_EQ(*CheckListenAddress("localhost:7070"), "127.0.0.1:7070");
  for (const char* address : {"0.0.0.0:7070", "10.0.0.1:1", "[::]:1", "example.org:80", "127.0.0.1",
                              "127.0.0.1:", "127.0.0.1:70700", "127.0.0.1:x", ":80", ""}) {
    EXPECT_FALSE(CheckListenAddress(address).ok()) << address;
  }
  EXPECT_THAT(std::string(CheckListenAddress("0.0.0.0:7070").status().message()), HasSubstr("TLS"));
}

TEST(Users, AConnectionOverTcpIsNobodyInParticular) {
  Users users({}, nullptr);
  users.Note(7, "ada", true);
  EXPECT_EQ(users.PrincipalOf("fd:7", {}).user, "ada");
  EXPECT_EQ(users.PrincipalOf("fd:7", {}).role, Role::kAdmin);
  EXPECT_EQ(users.PrincipalOf("fd:8", {}).user, kLoopbackUser);
  EXPECT_EQ(users.PrincipalOf("ipv4:127.0.0.1:7", {}).user, kLoopbackUser);
  EXPECT_EQ(users.PrincipalOf("ipv4:127.0.0.1:7", {}).role, Role::kOperator);
  users.Note(7, "grace", false);
  EXPECT_EQ(users.PrincipalOf("fd:7", {}).user, "grace");
  EXPECT_EQ(users.PrincipalOf("fd:7", {}).role, Role::kOperator);
}

TEST(Broker, ServesLoopbackIfToldAndNamesNobodyThere) {
  TestBroker broker([](BrokerOptions& options) { options.listen = "127.0.0.1:0"; });
  ASSERT_GT(broker.broker().port(), 0);
  auto stub = v1::JobsService::NewStub(grpc::CreateChannel(
      "127.0.0.1:" + std::to_string(broker.broker().port()), grpc::InsecureChannelCredentials()));
  v1::SubmitJobResponse response;
  ASSERT_TRUE(stub->SubmitJob(Call().get(), SubmitTrue(), &response).ok());
  EXPECT_EQ(broker.Get(response.job_id()).user(), kLoopbackUser);
}

TEST(Broker, OnlyItsOwnerMayConnect) {
  TestBroker broker;
  struct stat info {};
  ASSERT_EQ(stat((broker.directory() / "broker.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(Broker, ASocketPathThatIsTooLongIsRefused) {
  TestBroker other;  // has a directory
  BrokerOptions options;
  options.socket_path = "/tmp/" + std::string(200, 'x');
  options.token_file = other.directory() / "second-tokens.db";
  options.secrets.database = other.directory() / "second-secrets.db";
  options.project_file = other.directory() / "second-projects.db";
  options.audit.log.path = other.directory() / "second-audit.db";
  auto archive = logs::Archive::Open(other.directory() / "second-logs", {}, absl::Now);
  ASSERT_TRUE(archive.ok()) << archive.status();
  const auto broker =
      Broker::Start(options, std::make_unique<GatedStore>(), *std::move(archive),
                    OpenFiles(other.directory() / "second-files"), [](const absl::Status&) {});
  EXPECT_THAT(std::string(broker.status().message()), HasSubstr("--state-dir"));
}

TEST(Broker, APortInUseIsRefused) {
  TestBroker first([](BrokerOptions& options) { options.listen = "127.0.0.1:0"; });
  BrokerOptions options;
  options.listen = "127.0.0.1:" + std::to_string(first.broker().port());
  options.socket_path = first.directory() / "second.sock";
  options.token_file = first.directory() / "second-tokens.db";
  options.secrets.database = first.directory() / "second-secrets.db";
  options.project_file = first.directory() / "second-projects.db";
  options.audit.log.path = first.directory() / "second-audit.db";
  auto archive = logs::Archive::Open(first.directory() / "second-logs", {}, absl::Now);
  ASSERT_TRUE(archive.ok()) << archive.status();
  const auto second =
      Broker::Start(options, std::make_unique<GatedStore>(), *std::move(archive),
                    OpenFiles(first.directory() / "second-files"), [](const absl::Status&) {});
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("in use"));
}

TEST(Broker, ShutdownTellsAgentsToComeBackAndEndsStreams) {
  TestBroker broker;
  FakeAgent agent(broker);
  ASSERT_TRUE(agent.Connect());
  auto context = Call();
  auto watch = broker.jobs().WatchJobs(context.get(), {});
  auto down = std::async(std::launch::async, [&] { broker.broker().Shutdown(); });
  bool told = false;
  while (const auto message = agent.Read()) told = told || message->has_reconnect();
  EXPECT_TRUE(told);
  v1::WatchJobsResponse ignored;
  while (watch->Read(&ignored)) {
  }
  EXPECT_EQ(watch->Finish().error_code(), grpc::UNAVAILABLE);
  down.get();
  struct stat info {};
  EXPECT_NE(stat((broker.directory() / "broker.sock").c_str(), &info), 0);
}

TEST(Broker, ShutdownCommitsWhatItHasTaken) {
  TestBroker broker;
  broker.store().CloseGate();
  auto id = std::async(std::launch::async, [&] { return broker.Submit(); });
  broker.store().AwaitCommit();
  auto down = std::async(std::launch::async, [&] { broker.broker().Shutdown(); });
  broker.store().OpenGate();
  down.get();
  EXPECT_EQ(id.get(), 1u);
  EXPECT_TRUE(broker.store().GetJob(store::Scope::All(), 1).ok());
}

}  // namespace
}  // namespace muster::broker
