// Stands between an agent and its API server: passes bytes on, until a test cuts it.
#ifndef MUSTER_TESTS_INTEGRATION_KUBERNETES_RELAY_H_
#define MUSTER_TESTS_INTEGRATION_KUBERNETES_RELAY_H_

#include <atomic>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace muster::kubernetes {

// Listens on 127.0.0.1. Connections that have ended are kept until the relay ends: it is for tests.
class Relay {
 public:
  // `server` is the API server's "https://127.0.0.1:PORT".
  explicit Relay(const std::string& server);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Returns the server as seen through it.
  std::string url() const;
  // Returns the number of connections that have been made through it.
  int connections() const { return connections_; }
  // All connections end now, and each further one as soon as it is made.
  void Cut();
  void Mend() { is_cut_ = false; }
  // The present connections stay, and what either end sends is lost, as if the other were gone
  // without a word. New ones are not concerned.
  void Swallow();

 private:
  struct Link {
    int client = -1;
    int server = -1;
    std::atomic<bool> swallows = false;
    std::thread thread;
  };

  void Accept();
  static void Pass(const Link& link);

  const int server_port_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> is_cut_ = false;
  std::atomic<int> connections_ = 0;
  std::mutex mutex_;
  std::list<Link> links_;  // guarded by mutex_
  std::thread accepting_;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_TESTS_INTEGRATION_KUBERNETES_RELAY_H_
