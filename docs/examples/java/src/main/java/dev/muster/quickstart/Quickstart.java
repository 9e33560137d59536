package dev.muster.quickstart;

import dev.muster.v1.Command;
import dev.muster.v1.JobChange;
import dev.muster.v1.JobSpec;
import dev.muster.v1.JobsServiceGrpc;
import dev.muster.v1.ReadLogRequest;
import dev.muster.v1.SubmitJobRequest;
import dev.muster.v1.WatchFromBeginning;
import dev.muster.v1.WatchJobsRequest;
import io.grpc.ManagedChannel;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollDomainSocketChannel;
import io.grpc.netty.shaded.io.netty.channel.epoll.EpollEventLoopGroup;
import io.grpc.netty.shaded.io.netty.channel.unix.DomainSocketAddress;
import java.util.UUID;

/** Submits a job, follows it to its end and prints its log. Its argument is the broker's address. */
public final class Quickstart {
  public static void main(String[] arguments) throws Exception {
    EpollEventLoopGroup threads = new EpollEventLoopGroup(1);
    ManagedChannel channel = open(arguments[0], threads);
    try {
      run(JobsServiceGrpc.newBlockingStub(channel));
    } finally {
      channel.shutdownNow();
      threads.shutdownGracefully();
    }
  }

  /** An address is unix:PATH, or HOST:PORT of a broker with `listen`. */
  private static ManagedChannel open(String address, EpollEventLoopGroup threads) {
    if (!address.startsWith("unix:")) {
      return NettyChannelBuilder.forTarget(address).usePlaintext().build();
    }
    return NettyChannelBuilder.forAddress(new DomainSocketAddress(address.substring("unix:".length())))
        .eventLoopGroup(threads)
        .channelType(EpollDomainSocketChannel.class)
        .overrideAuthority("localhost")
        .usePlaintext()
        .build();
  }

  private static void run(JobsServiceGrpc.JobsServiceBlockingStub jobs) {
    JobSpec spec =
        JobSpec.newBuilder()
            .setName("hello")
            .setNodes(1)
            .setCommand(Command.newBuilder().setScript("echo hello from $MUSTER_CLUSTER"))
            .build();
    // A repeat with the same request id gets the same job, so a broken connection never makes a second one.
    SubmitJobRequest request =
        SubmitJobRequest.newBuilder().setSpec(spec).setRequestId(UUID.randomUUID().toString()).build();
    long jobId = jobs.submitJob(request).getJobId();
    System.out.println("job " + jobId);

    WatchJobsRequest watch =
        WatchJobsRequest.newBuilder()
            .addJobIds(jobId)
            .setBeginning(WatchFromBeginning.getDefaultInstance())
            .setUntilTerminal(true)
            .build();
    jobs.watchJobs(watch)
        .forEachRemaining(
            message -> {
              for (JobChange change : message.getChangesList()) { // none: a heartbeat
                if (change.hasTransition()) { // else a change of no state
                  System.out.println(change.getTransition().getJobState());
                }
              }
            });

    ReadLogRequest log = ReadLogRequest.newBuilder().setJobId(jobId).setFollow(true).build();
    jobs.readLog(log).forEachRemaining(piece -> System.out.print(piece.getData().toStringUtf8()));
  }
}
