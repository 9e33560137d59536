module muster.dev/api

go 1.26.0

require (
	connectrpc.com/connect v1.21.1
	go.yaml.in/yaml/v3 v3.0.6
	google.golang.org/genproto/googleapis/rpc v0.0.0-20250804133106-a7a43d27e69b
	google.golang.org/protobuf v1.36.12
)
