import NIOCore
import NIOHTTP2

extension HTTP2ClientConnection {
    /// Takes a frame from the peer.
    func receive(_ frame: HTTP2Frame) {
        self.expectsStreamError = false
        switch frame.payload {
        case .headers(let headers):
            guard let stream = self.streams[frame.streamID], !stream.isAnswered else { return }
            self.advance(stream, stream.reader.read(headers.headers, endsStream: headers.endStream))
        case .data(let data):
            guard let stream = self.streams[frame.streamID], !stream.isAnswered,
                case .byteBuffer(let bytes) = data.data
            else { return }
            self.advance(stream, stream.reader.read(bytes, endsStream: data.endStream))
        case .rstStream(let code):
            self.wasReset(frame.streamID, code)
        case .goAway(let last, _, _):
            self.goAway(after: last)
        case .settings(.settings(let settings)):
            self.apply(settings)
        case .settings(.ack), .ping, .windowUpdate, .priority, .pushPromise, .alternativeService, .origin:
            // The frame handler has done what there is to do.
            break
        }
    }

    /// The transport has handed over everything it read at once.
    func readCompleted() {
        self.expectsStreamError = false
        self.heard()
        guard self.answeredEarly > 0 else { return }
        // What is left of these requests interests nobody.
        for stream in self.streams.values where stream.isAnswered {
            guard self.forget(stream) else { continue }
            self.isResetting = true
            self.write(stream.id, .rstStream(.cancel))
            self.isResetting = false
            self.released(stream)
        }
    }

    /// Widens a window of ours that is half used up.
    func windowChanged(of id: HTTP2StreamID, to bytes: Int) {
        let whole: Int
        if id == .rootStream {
            whole = HTTP2ClientSettings.connectionWindowBytes
        } else {
            guard let stream = self.streams[id], !stream.isAnswered else { return }
            whole = self.core.http2.streamWindowBytes
        }
        guard bytes < whole / 2, case .some = self.context else { return }
        switch self.phase {
        case .serving, .draining: self.write(id, .windowUpdate(windowSizeIncrement: whole - bytes))
        case .greeting, .closed: break
        }
    }

    /// A stream is over for the frame handler.
    ///
    /// An answered one ends here. Any other was in error: its frame is not handed on, the frame handler has reset it,
    /// and reports the error next.
    func streamClosed(_ id: HTTP2StreamID, _ reason: HTTP2ErrorCode?) {
        if let reason, !self.isResetting, id != self.lastReset, id <= self.lastAccepted {
            self.expectsStreamError = true
            guard let stream = self.streams[id], self.forget(stream) else { return }
            self.fail(stream, .invalidResponse, HTTP2ClientFault.violation(reason))
        } else if let stream = self.streams[id], stream.isAnswered, self.forget(stream) {
            self.released(stream)
        }
    }

    /// Something is wrong with a stream, or with the connection.
    func failed(_ error: any Error) {
        if self.expectsStreamError {
            self.expectsStreamError = false
        } else if let error = error as? NIOHTTP2Errors.StreamError {
            if let stream = self.streams[error.streamID], self.forget(stream) {
                self.fail(stream, .connectionClosed, error)
            }
        } else if error is NIOHTTP2Errors.CreatedStreamAfterGoaway, self.lastAccepted != .maxID {
            // A request the frame handler held back; it has been taken elsewhere when the peer went away.
        } else {
            self.abort(.connectionClosed, cause: error)
        }
    }

    private func advance(_ stream: HTTP2ClientStream, _ step: HTTP2ResponseReader.Step) {
        switch step {
        case .incomplete:
            let added = stream.reader.heldBytes - stream.heldBytes
            guard added == 0 || self.core.hold(added) else {
                self.reset(stream, .cancel, .responseTooLarge)
                return
            }
            stream.heldBytes += added
        case .complete(let response):
            // The frame handler closes the stream right after this frame, unless the request is not written yet.
            stream.isAnswered = true
            self.answeredEarly += 1
            stream.exchange.finish(.success(response))
        case .tooLarge:
            self.reset(stream, .cancel, .responseTooLarge)
        case .malformed:
            self.reset(stream, .protocolError, .invalidResponse)
        }
    }

    private func wasReset(_ id: HTTP2StreamID, _ code: HTTP2ErrorCode) {
        self.lastReset = id
        guard let stream = self.streams[id], self.forget(stream) else { return }
        if stream.isAnswered {
            self.released(stream)
        } else if code == .refusedStream, !stream.reader.hasBegun {
            // The place goes to another exchange first: the peer has just said that it is not for this one.
            self.released(stream)
            self.lane.retry(stream.exchange, refusedBy: self)
        } else {
            self.fail(stream, .connectionClosed, HTTP2ClientFault.reset(code))
        }
    }

    /// The peer looks at no stream after this one (RFC 9113, section 6.8), so that those are safe to repeat.
    private func goAway(after last: HTTP2StreamID) {
        self.lastAccepted = min(self.lastAccepted, last)
        let refused = self.streams.values
            .filter { $0.id > last && !$0.isAnswered }
            .sorted { $0.id < $1.id }
        // First, so that the places of all are given back.
        self.drain()
        for stream in refused {
            _ = self.forget(stream)
        }
        self.streamsChanged()
        for stream in refused {
            self.lane.retry(stream.exchange, refusedBy: self)
        }
    }

    private func apply(_ settings: HTTP2Settings) {
        if let allowed = settings.last(where: { $0.parameter == .maxConcurrentStreams })?.value {
            self.streamLimit = self.core.http2.streams(allowed: allowed)
        }
        switch self.phase {
        case .greeting: self.greeted()
        case .serving: self.lane.streamLimitChanged(of: self)
        case .draining, .closed: break
        }
    }

    private func fail(_ stream: HTTP2ClientStream, _ code: HTTPClientError.Code, _ cause: any Error) {
        stream.exchange.finish(.failure(HTTPClientError(code: code, requestSent: true, cause: cause)))
        self.released(stream)
    }
}
