#include "agents/core/broker_link.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <optional>

#include "tests/unit/agents/eventually.h"
#include "tests/unit/hosts/temp_dir.h"

namespace muster::agents {
namespace {

using Sent = ControlLink::Sent;

// Takes connections, as its kernel does that for it, and says and reads nothing.
class DumbServer {
 public:
  explicit DumbServer(const std::string& path) : fd_(socket(AF_UNIX, SOCK_STREAM, 0)) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    const auto* as_socket = reinterpret_cast<const sockaddr*>(&address);
    EXPECT_EQ(bind(fd_, as_socket, sizeof(address)), 0);
    EXPECT_EQ(listen(fd_, 8), 0);
  }
  ~DumbServer() { close(fd_); }

 private:
  const int fd_;
};

class BrokerLinkTest : public testing::Test {
 protected:
  std::unique_ptr<ControlLink> Dial() {
    return dialer_.DialControl({.on_message = [](agent::v1::ConnectResponse) {},
                                .on_end =
                                    [this](absl::Status status) {
                                      end_.With([&](auto& end) { end = std::move(status); });
                                    }});
  }
  static agent::v1::ConnectRequest Large() {
    agent::v1::ConnectRequest message;
    message.mutable_heartbeat()->set_scheduler_error(std::string(1 << 20, 'x'));
    return message;
  }

  hosts::TempDir dir_;
  Dialer dialer_{{"unix:" + dir_.path() + "/sock"}};
  Shared<std::optional<absl::Status>> end_;
};

TEST_F(BrokerLinkTest, ALinkThatEndedIsNotTakenForABrokerThatDoesNotRead) {
  auto link = Dial();  // nobody listens
  ASSERT_TRUE(end_.Eventually([](auto& end) { return end.has_value(); }));
  EXPECT_EQ(link->Send({}), Sent::kOver);
}

TEST_F(BrokerLinkTest, WhatWaitsForABrokerThatDoesNotReadIsBoundInBytes) {
  const DumbServer server(dir_.path() + "/sock");
  auto link = Dial();
  int sent = 0;
  Sent last = Sent::kYes;
  while (last == Sent::kYes && sent < 1000) {
    last = link->Send(Large());
    if (last == Sent::kYes) ++sent;
  }
  EXPECT_EQ(last, Sent::kFull);
  EXPECT_GT(sent, 32);   // what the agent may have in flight
  EXPECT_LE(sent, 100);  // MiB
}

}  // namespace
}  // namespace muster::agents
