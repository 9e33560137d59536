// Plays an HTTP/1.1 server on this machine that answers as a test tells it to, for faults that a
// real API server does not have when a test wants them.
#ifndef MUSTER_TESTS_UNIT_KUBERNETES_SCRIPTED_SERVER_H_
#define MUSTER_TESTS_UNIT_KUBERNETES_SCRIPTED_SERVER_H_

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace muster::kubernetes {

struct ScriptedRequest {
  std::string method;
  std::string target;                          // path and query
  std::map<std::string, std::string> headers;  // names in small letters
  std::string body = {};
};

struct ScriptedReply {
  int status = 200;
  std::string body = {};
  std::vector<std::string> headers = {};  // "Name: value"
  // The body is one chunk, none if it is empty, of a stream that goes on until the client, or the
  // server, is gone.
  bool stays_open = false;
  // The connection is closed without an answer.
  bool hangs_up = false;
};

class ScriptedServer {
 public:
  // Called from a thread for each connection.
  using Handler = std::function<ScriptedReply(const ScriptedRequest&)>;

  explicit ScriptedServer(Handler handler);
  // Ends all connections.
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::string url() const;

 private:
  void Accept();
  void Serve(int fd);

  const Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::vector<int> connections_;      // guarded by mutex_
  std::vector<std::thread> threads_;  // guarded by mutex_
  std::thread accepting_;
};

}  // namespace muster::kubernetes

#endif  // MUSTER_TESTS_UNIT_KUBERNETES_SCRIPTED_SERVER_H_
