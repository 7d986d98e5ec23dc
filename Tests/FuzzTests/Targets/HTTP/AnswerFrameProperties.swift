import HTTPTypes
import NIOCore
import NIOEmbedded

@testable import EventLoopHTTP

/// Properties of everything that an HTTP/2 server may send after a client's requests.
///
/// The first byte of an input chooses the number of requests and their method.
enum AnswerFrameProperties {
    private struct Reading: Equatable {
        /// Everything that is final about the streams and the connection, in order.
        var events: [String] = []
        var mayContinue = true
        var isOver = false
        var violation: String?

        var hasEnded: Bool { self.events.contains { $0.hasPrefix("go away") } }
    }

    /// libnghttp2 counts a CONTINUATION frame again for each read that ends within its head of nine bytes.
    private static let countedTwice = "Too many CONTINUATION frames following a HEADER frame"

    private static let configuration = {
        var configuration = HTTPClientConfiguration()
        configuration.maxResponseHeadBytes = 512
        configuration.maxResponseFields = 8
        configuration.maxResponseBodyBytes = 256
        return configuration
    }()

    static func check(_ input: [UInt8]) throws(FuzzFinding) {
        guard let choice = input.first else { return }
        let bytes = Array(input.dropFirst())
        let whole = try Self.read([ByteBuffer(bytes: bytes)], choice)
        for pieces in Pieces.cuts(of: bytes) {
            let cut = try Self.read(pieces, choice)
            guard cut.violation != Self.countedTwice else { continue }
            // After GOAWAY and the end of all streams, a further read is ignored.
            if cut.hasEnded, whole.events.starts(with: cut.events) { continue }
            try FuzzFinding.requireEqual(cut, whole, "another reading when the bytes come in pieces")
        }
    }

    private static func read(_ pieces: [ByteBuffer], _ choice: UInt8) throws(FuzzFinding) -> Reading {
        let settings = HTTP2Session.Settings(Self.configuration)
        let session = HTTP2Session(settings: settings, authority: "fcm.test")
        let request = HTTPClientRequest(
            method: choice & 4 == 0 ? .post : .head,
            path: "/",
            body: ByteBuffer(repeating: 0x61, count: choice & 8 == 0 ? 2 : 0)
        )
        let loop = EmbeddedEventLoop()
        for _ in 0...(choice & 3) {
            let exchange = HTTPClientExchange(request: request, deadline: .distantFuture, eventLoop: loop)
            try FuzzFinding.require(session.start(exchange, settings.responseLimits) != nil, "no stream")
        }
        var output = ByteBuffer()
        try FuzzFinding.require(session.write(to: &output), "the requests can't be written")
        var reading = Reading()
        var events: [HTTP2Session.Event] = []
        for piece in pieces where reading.mayContinue {
            reading.mayContinue = session.receive(piece)
            events += session.takeEvents()
        }
        // What this side has to say to that, and its effects.
        reading.isOver = session.isOver
        reading.violation = session.violation
        _ = session.write(to: &output)
        events += session.takeEvents()
        for event in events {
            if let text = Self.text(event) { reading.events.append(text) }
            try Self.check(event)
            Self.handle(event, session)
        }
        _ = session.write(to: &output)
        session.goAway()
        _ = session.write(to: &output)
        try FuzzFinding.require(output.readableBytes < 16_384, "an answer to everything")
        return reading
    }

    private static func check(_ event: HTTP2Session.Event) throws(FuzzFinding) {
        switch event {
        case .answered(_, let response):
            try FuzzFinding.require((200...599).contains(response.status.code), "accepted with \(response.status)")
            try FuzzFinding.require(response.body.readableBytes <= 256, "a body beyond the limit")
            try FuzzFinding.require(response.fields.count <= 8, "too many fields")
        case .arrived(let stream):
            try FuzzFinding.require(stream.heldBytes <= 512 + 256, "more than the limits hold")
        case .settings, .tooLarge, .malformed, .reset, .violated, .closed, .goAway, .unsent:
            break
        }
    }

    private static func text(_ event: HTTP2Session.Event) -> String? {
        switch event {
        case .settings(let maxStreams): "settings \(maxStreams ?? -1)"
        case .arrived: nil
        case .answered(let stream, let response):
            "\(stream.id) answered \(response.status.code) \(response.fields.fields) \(response.body.readableBytesView)"
        case .tooLarge(let stream): "\(stream.id) too large"
        case .malformed(let stream): "\(stream.id) malformed"
        case .reset(let stream, let code): "\(stream.id) reset \(code.rawValue)"
        case .violated(let stream, let code): "\(stream.id) violated \(code.rawValue)"
        case .closed(let stream): "\(stream.id) closed"
        case .goAway(let lastStream): "go away \(lastStream)"
        case .unsent(let stream): "\(stream.id) unsent"
        }
    }

    /// Does to the session what a connection does.
    private static func handle(_ event: HTTP2Session.Event, _ session: HTTP2Session) {
        switch event {
        case .tooLarge(let stream):
            if session.forget(stream) { session.reset(stream, .cancel) }
        case .malformed(let stream):
            if session.forget(stream) { session.reset(stream, .protocolError) }
        case .violated(let stream, _), .closed(let stream), .unsent(let stream):
            _ = session.forget(stream)
        case .goAway(let lastStream):
            for stream in session.streams.values where stream.id > lastStream { _ = session.forget(stream) }
        case .settings, .arrived, .answered, .reset:
            break
        }
    }
}
