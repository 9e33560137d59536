#include "tests/unit/rpc/any_call.h"

#include <grpcpp/generic/generic_stub.h>

#include "tests/unit/rpc/harness.h"

namespace muster::broker {

grpc::Status CallAny(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
                     const std::string& token) {
  grpc::GenericStub stub(channel);
  const auto context = Call();
  if (!token.empty()) context->AddMetadata("authorization", "Bearer " + token);
  grpc::CompletionQueue queue;
  auto call = stub.PrepareCall(context.get(), method, &queue);
  const auto await = [&queue](void* wanted) {
    void* tag = nullptr;
    bool ok = false;
    do {
      if (!queue.Next(&tag, &ok)) return false;
    } while (tag != wanted);
    return ok;
  };
  int steps[4];
  call->StartCall(&steps[0]);
  await(&steps[0]);
  const grpc::Slice nothing;
  call->Write(grpc::ByteBuffer(&nothing, 1), grpc::WriteOptions().set_last_message(), &steps[1]);
  await(&steps[1]);
  grpc::ByteBuffer answer;
  // A stream that is let in has no end of its own.
  call->Read(&answer, &steps[2]);
  if (await(&steps[2])) context->TryCancel();
  grpc::Status status;
  call->Finish(&status, &steps[3]);
  await(&steps[3]);
  queue.Shutdown();
  return status;
}

}  // namespace muster::broker
