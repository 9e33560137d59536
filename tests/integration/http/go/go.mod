module check

go 1.24.0

require (
	connectrpc.com/connect v1.19.1
	google.golang.org/genproto/googleapis/rpc v0.0.0-20250804133106-a7a43d27e69b
	muster.dev/api v0.0.0
)

require google.golang.org/protobuf v1.36.9 // indirect

replace muster.dev/api => ./gen
