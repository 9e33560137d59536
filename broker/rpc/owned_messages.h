// Lets a unary call have its request, which gRPC otherwise only shows, so that it need not be
// copied.
#ifndef MUSTER_BROKER_RPC_OWNED_MESSAGES_H_
#define MUSTER_BROKER_RPC_OWNED_MESSAGES_H_

#include <grpcpp/support/message_allocator.h>
#include <grpcpp/support/server_callback.h>

#include <utility>

namespace muster::broker {

// Set it as the allocator of one method, whose calls must not outlive it.
template <typename Request, typename Response>
class OwnedMessages final : public grpc::MessageAllocator<Request, Response> {
 public:
  grpc::MessageHolder<Request, Response>* AllocateMessages() override { return new Messages; }

  // Leaves the request of this call empty.
  static Request TakeRequest(grpc::CallbackServerContext* call) {
    return std::move(*static_cast<Messages*>(call->GetRpcAllocatorState())->request());
  }

 private:
  class Messages final : public grpc::MessageHolder<Request, Response> {
   public:
    Messages() {
      this->set_request(&request_);
      this->set_response(&response_);
    }
    void Release() override { delete this; }

   private:
    Request request_;
    Response response_;
  };
};

}  // namespace muster::broker

#endif  // MUSTER_BROKER_RPC_OWNED_MESSAGES_H_
