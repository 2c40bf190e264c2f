package kubelet

import (
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // registers the codec that is wrapped
	"google.golang.org/grpc/mem"
)

// codec is gRPC's codec, except for answers while Server.Garbage is on.
type codec struct{ server *Server }

// junk is no protobuf message: its first field's length exceeds the message.
var junk = []byte("\x0a\xff\xff\xff\x7fnvidia")

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	c.server.mu.Lock()
	garbage := c.server.garbage
	c.server.mu.Unlock()
	if garbage {
		return mem.BufferSlice{mem.SliceBuffer(junk)}, nil
	}
	return encoding.GetCodecV2("proto").Marshal(v)
}

func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	return encoding.GetCodecV2("proto").Unmarshal(data, v)
}

func (codec) Name() string { return "proto" }
