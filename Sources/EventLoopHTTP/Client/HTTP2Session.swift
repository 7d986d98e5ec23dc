import CNGHTTP2
import NIOCore

/// The HTTP/2 protocol of one connection, as a client: frames, header compression, flow control and stream states.
///
/// libnghttp2 does the work (docs/decisions/0072-nghttp2.md). This class does no input or output: the caller passes in
/// what arrived, takes out what must be written, and then handles the events. Nothing happens between these calls, so
/// the caller may end a stream or the whole connection while it handles an event.
@safe
final class HTTP2Session {
    /// A pool's configuration in HTTP/2 terms, computed once.
    struct Settings: Sendable {
        /// The streams assumed if the peer's settings don't say. RFC 9113, section 6.5.2, asks peers to allow as many.
        private static let defaultStreams = 100
        /// The window of a whole connection, in bytes: the data of all its streams that may be in transit.
        fileprivate static let connectionWindowBytes: Int32 = 4 * 1024 * 1024

        let responseLimits: HTTP2ResponseReader.Limits
        let livenessLimits: HTTP2Liveness.Limits
        private let maxStreamsPerConnection: Int
        /// The window of one stream, in bytes. A usual answer within its limit never waits for more window.
        ///
        /// If a request allows a larger answer, the window grows as the answer arrives.
        fileprivate let streamWindowBytes: Int
        fileprivate let maxHeaderListBytes: Int

        init(_ configuration: HTTPClientConfiguration) {
            self.responseLimits = HTTP2ResponseReader.Limits(
                maxHeadBytes: configuration.maxResponseHeadBytes,
                maxFields: configuration.maxResponseFields,
                maxBodyBytes: configuration.maxResponseBodyBytes
            )
            self.livenessLimits = HTTP2Liveness.Limits(configuration)
            self.maxStreamsPerConnection = configuration.http2.maxStreamsPerConnection
            let usualBytes = min(configuration.maxResponseBodyBytes, HTTPClientRequest.usualResponseBodyBytes)
            self.streamWindowBytes = max(65_535, usualBytes + 16_384)
            self.maxHeaderListBytes = 2 * configuration.maxResponseHeadBytes
        }

        func streams(allowed: Int?) -> Int {
            min(allowed ?? Self.defaultStreams, self.maxStreamsPerConnection)
        }
    }

    /// The code of a stream's or connection's end (RFC 9113, section 7).
    struct ErrorCode: RawRepresentable, Sendable, Equatable {
        let rawValue: UInt32

        static let protocolError = ErrorCode(rawValue: 0x1)
        static let refusedStream = ErrorCode(rawValue: 0x7)
        static let cancel = ErrorCode(rawValue: 0x8)
    }

    /// The exchange of one request for its answer.
    final class Stream {
        let id: Int32
        let exchange: HTTPClientExchange
        fileprivate var unsent: ByteBuffer
        fileprivate var reader: HTTP2ResponseReader
        /// False if the answer has ended, or the rest of it is of no interest.
        fileprivate(set) var isRead = true
        /// True if both sides have ended the stream, or one has reset it.
        fileprivate var isClosed = false
        /// True if the caller has its answer. The stream remains until the request is written or given up.
        var isAnswered = false
        /// The bytes of the incomplete answer that the connection has counted.
        var countedBytes = 0

        fileprivate init(id: Int32, exchange: HTTPClientExchange, limits: HTTP2ResponseReader.Limits) {
            self.id = id
            self.exchange = exchange
            self.unsent = exchange.request.body
            self.reader = HTTP2ResponseReader(limits: limits, method: exchange.request.method)
        }

        /// True if any part of an answer has arrived, including an interim one.
        var hasBegunAnswer: Bool { self.reader.hasBegun }
        /// The bytes of the incomplete answer that are in memory.
        var heldBytes: Int { self.reader.heldBytes }
    }

    enum Event {
        /// The peer's settings arrived. Without a limit of streams they leave it as it was.
        case settings(maxStreams: Int?)
        /// A part of an answer arrived.
        case arrived(Stream)
        case answered(Stream, HTTPClientResponse)
        /// The head or the body of an answer exceeds its limit.
        case tooLarge(Stream)
        case malformed(Stream)
        /// The peer ended the stream.
        case reset(Stream, ErrorCode)
        /// The stream broke the protocol, and has been reset with this code.
        case violated(Stream, ErrorCode)
        /// Both sides of an answered stream have ended.
        case closed(Stream)
        /// The peer processes no later stream than this one (RFC 9113, section 6.8).
        case goAway(lastStream: Int32)
        /// The request was not sent, because the peer accepts no more.
        case unsent(Stream)
    }

    /// Stream identifiers are not reused (RFC 9113, section 5.1.1).
    private static let lastUsableID = Int32.max - 2
    /// The size of a request's fields, in bytes, that libnghttp2 certainly sends.
    private static let maxHeadBytes = 60_000
    /// The connection ends after this many consecutive frames without content.
    private static let maxEmptyFrames = 8

    private let session: OpaquePointer
    private var headWriter: HTTP2RequestHeadWriter
    private(set) var streams: [Int32: Stream] = [:]
    private var events: [Event] = []
    /// The stream of the last look-up. The calls of one frame all concern the same stream.
    private var lastFound: Stream?
    private var emptyFrames = 0
    private(set) var hasUsedAllIDs = false
    /// The cause of the end of a connection whose peer broke the protocol.
    private(set) var violation: String?
    /// True after an error that leaves libnghttp2's session unusable: nothing more is read, sent or started.
    private var hasFailed = false

    init(settings: Settings, authority: String) {
        self.headWriter = HTTP2RequestHeadWriter(scheme: HTTPOrigin.Scheme.https.rawValue, authority: authority)
        unsafe self.session = Self.makeSession()
        unsafe nghttp2_session_set_user_data(self.session, Unmanaged.passUnretained(self).toOpaque())
        self.submit(settings)
    }

    deinit {
        unsafe nghttp2_session_del(self.session)
    }

    private func submit(_ settings: Settings) {
        let entries = [
            nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0),
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue),
                value: UInt32(settings.streamWindowBytes)
            ),
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue),
                value: UInt32(settings.maxHeaderListBytes)
            ),
        ]
        Self.check(unsafe nghttp2_submit_settings(self.session, Self.noFlags, entries, entries.count))
        let window = Settings.connectionWindowBytes
        Self.check(unsafe nghttp2_session_set_local_window_size(self.session, Self.noFlags, 0, window))
    }

    // MARK: Input and output

    /// Reads bytes from the peer. Returns false if the connection must end.
    func receive(_ bytes: ByteBuffer) -> Bool {
        guard !self.hasFailed else { return false }
        // Unsafe because libnghttp2 takes a pointer. It reads the bytes before it returns, and keeps none.
        let count = unsafe bytes.withUnsafeReadableBytes { bytes in
            unsafe nghttp2_session_mem_recv(
                self.session,
                bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
                bytes.count
            )
        }
        if count < 0 { self.fail(Int32(count)) }
        return count >= 0
    }

    /// Writes everything that may leave now. Returns false if the connection must end.
    func write(to output: inout ByteBuffer) -> Bool {
        while !self.hasFailed {
            var bytes: UnsafePointer<UInt8>?
            // Unsafe because libnghttp2 returns a pointer, which is valid until the next call.
            let count = unsafe nghttp2_session_mem_send(self.session, &bytes)
            if count == 0 { return true }
            if count < 0 {
                self.fail(Int32(count))
            } else {
                unsafe output.writeBytes(UnsafeRawBufferPointer(start: bytes, count: count))
            }
        }
        return false
    }

    /// The events since the last call, in their order.
    func takeEvents() -> [Event] {
        defer { self.events = [] }
        return self.events
    }

    var wantsToWrite: Bool { unsafe nghttp2_session_want_write(self.session) != 0 }

    /// True if neither side has anything more to say, as after an error that ends the connection.
    var isOver: Bool { unsafe nghttp2_session_want_read(self.session) == 0 && !self.wantsToWrite }

    // MARK: Actions

    /// Sends a request on a new stream. Returns nil if that is impossible.
    func start(_ exchange: HTTPClientExchange, _ limits: HTTP2ResponseReader.Limits) -> Stream? {
        let request = exchange.request
        let head = self.headWriter.head(of: request)
        guard !self.hasFailed, head.bytes.count <= Self.maxHeadBytes else { return nil }
        let length = request.statesLength ? Int64(request.body.readableBytes) : -1
        // Unsafe because libnghttp2 takes pointers. It copies the fields before it returns.
        let id = unsafe fcmgw_http2_submit(self.session, head.bytes, head.ends, head.ends.count / 2, length) {
            unsafe HTTP2Session.of($6)?.read($1, into: $2, $3, flags: $4) ?? Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)
        }
        guard id > 0 else { return nil }
        self.hasUsedAllIDs = id >= Self.lastUsableID
        let stream = Stream(id: id, exchange: exchange, limits: limits)
        self.streams[id] = stream
        return stream
    }

    /// True if the peer may have received any part of the request.
    func mayHaveSent(_ stream: Stream) -> Bool {
        // libnghttp2 knows a stream from the moment it writes the request's head until the stream is closed.
        unsafe nghttp2_session_get_stream_local_close(self.session, stream.id) >= 0 || stream.isClosed
    }

    /// Forgets a stream; no more events concern it. Returns false if it was forgotten before.
    func forget(_ stream: Stream) -> Bool {
        self.lastFound = nil
        stream.isRead = false
        return self.streams.removeValue(forKey: stream.id) != nil
    }

    func forgetAll() {
        self.lastFound = nil
        self.streams = [:]
    }

    /// Ends a stream early. The caller has forgotten it.
    func reset(_ stream: Stream, _ code: ErrorCode) {
        guard !self.hasFailed, !stream.isClosed else { return }
        Self.check(unsafe nghttp2_submit_rst_stream(self.session, Self.noFlags, stream.id, code.rawValue))
    }

    func ping() {
        guard !self.hasFailed else { return }
        Self.check(unsafe nghttp2_submit_ping(self.session, Self.noFlags, nil))
    }

    /// Announces the end of the connection.
    func goAway() {
        guard !self.hasFailed else { return }
        Self.check(unsafe nghttp2_submit_goaway(self.session, Self.noFlags, 0, 0, nil, 0))
    }

    // MARK: Frames

    private func stream(_ id: Int32) -> Stream? {
        if let lastFound, lastFound.id == id { return lastFound }
        self.lastFound = self.streams[id]
        return self.lastFound
    }

    private func beganHeaders(_ id: Int32) {
        guard let stream = self.stream(id), stream.isRead else { return }
        stream.reader.beginBlock()
    }

    private func read(_ id: Int32, name: Span<UInt8>, value: Span<UInt8>) {
        guard let stream = self.stream(id), stream.isRead else { return }
        stream.reader.readField(name: name, value: value)
    }

    private func read(_ id: Int32, _ bytes: Span<UInt8>) {
        guard let stream = self.stream(id), stream.isRead else { return }
        self.advance(stream, stream.reader.read(bytes))
    }

    private func received(_ frame: nghttp2_frame) {
        let header = unsafe frame.hd
        let endsStream = header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        switch nghttp2_frame_type(UInt32(header.type)) {
        case NGHTTP2_HEADERS:
            self.emptyFrames = 0
            guard let stream = self.stream(header.stream_id), stream.isRead else { return }
            self.advance(stream, stream.reader.endBlock(endsStream: endsStream))
        case NGHTTP2_DATA:
            self.emptyFrames = header.length == 0 && !endsStream ? self.emptyFrames + 1 : 0
            guard endsStream, let stream = self.stream(header.stream_id), stream.isRead else { return }
            self.advance(stream, stream.reader.end())
        case NGHTTP2_RST_STREAM:
            guard let stream = self.stream(header.stream_id) else { return }
            (stream.isRead, stream.isClosed) = (false, true)
            self.events.append(.reset(stream, ErrorCode(rawValue: unsafe frame.rst_stream.error_code)))
        case NGHTTP2_GOAWAY:
            self.events.append(.goAway(lastStream: unsafe frame.goaway.last_stream_id))
        case NGHTTP2_SETTINGS where header.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) == 0:
            let limit = unsafe nghttp2_session_get_remote_settings(
                self.session,
                NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS
            )
            self.events.append(.settings(maxStreams: limit == .max ? nil : Int(limit)))
        default:
            // libnghttp2 has done all that is necessary.
            break
        }
    }

    private func advance(_ stream: Stream, _ step: HTTP2ResponseReader.Step) {
        switch step {
        case .incomplete:
            self.events.append(.arrived(stream))
            return
        case .complete(let response): self.events.append(.answered(stream, response))
        case .tooLarge: self.events.append(.tooLarge(stream))
        case .malformed: self.events.append(.malformed(stream))
        }
        stream.isRead = false
    }

    private func closed(_ id: Int32, _ code: UInt32) {
        guard let stream = self.stream(id) else { return }
        let isWhole = code == 0 || !stream.isRead
        self.events.append(isWhole ? .closed(stream) : .violated(stream, ErrorCode(rawValue: code)))
        (stream.isRead, stream.isClosed) = (false, true)
    }

    private func didNotSend(_ frame: nghttp2_frame) {
        let header = unsafe frame.hd
        guard nghttp2_frame_type(UInt32(header.type)) == NGHTTP2_HEADERS, let stream = self.stream(header.stream_id)
        else { return }
        self.events.append(.unsent(stream))
        stream.isRead = false
    }

    /// Writes a part of a request's body. Returns its size.
    private func read(
        _ id: Int32,
        into bytes: UnsafeMutablePointer<UInt8>?,
        _ size: Int,
        flags: UnsafeMutablePointer<UInt32>?
    ) -> Int {
        guard let stream = self.stream(id) else { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
        let part = stream.unsent.readSlice(length: min(size, stream.unsent.readableBytes)) ?? ByteBuffer()
        // Unsafe because libnghttp2 gives its own buffer. It has room for `size` bytes.
        unsafe part.withUnsafeReadableBytes {
            unsafe UnsafeMutableRawBufferPointer(start: bytes, count: size).copyMemory(from: $0)
        }
        if stream.unsent.readableBytes == 0 {
            unsafe flags?.pointee |= UInt32(NGHTTP2_DATA_FLAG_EOF.rawValue)
        }
        return part.readableBytes
    }

    private func fail(_ code: Int32) {
        self.hasFailed = true
        self.note(error: code)
    }

    private func note(error code: Int32) {
        if self.violation == nil { self.violation = unsafe String(cString: nghttp2_strerror(code)) }
    }
}

/// The bridge to libnghttp2.
extension HTTP2Session {
    private static let noFlags = UInt8(NGHTTP2_FLAG_NONE.rawValue)

    /// Ends the process if a call failed that can fail only without memory.
    private static func check(_ code: Int32) {
        precondition(code == 0, "libnghttp2 failed: \(code)")
    }

    /// The session that a call back belongs to.
    private static func of(_ context: UnsafeMutableRawPointer?) -> HTTP2Session? {
        // Safe because libnghttp2 calls back only within calls of the session's own methods.
        unsafe context.map { unsafe Unmanaged<HTTP2Session>.fromOpaque($0).takeUnretainedValue() }
    }

    /// Makes libnghttp2's session without a Swift session, which is set before any call back.
    private static func makeSession() -> OpaquePointer {
        var callbacks: OpaquePointer?
        var options: OpaquePointer?
        var session: OpaquePointer?
        defer {
            unsafe nghttp2_session_callbacks_del(callbacks)
            unsafe nghttp2_option_del(options)
        }
        Self.check(unsafe nghttp2_session_callbacks_new(&callbacks))
        unsafe nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, context in
            if let frame = unsafe frame { unsafe HTTP2Session.of(context)?.beganHeaders(frame.pointee.hd.stream_id) }
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _,
            frame,
            name,
            nameCount,
            value,
            valueCount,
            _,
            context in
            guard let frame = unsafe frame, let name = unsafe name, let value = unsafe value else { return 0 }
            unsafe HTTP2Session.of(context)?
                .read(
                    frame.pointee.hd.stream_id,
                    name: Span(_unsafeStart: name, count: nameCount),
                    value: Span(_unsafeStart: value, count: valueCount)
                )
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) {
            _,
            _,
            id,
            bytes,
            count,
            context in
            guard let bytes = unsafe bytes else { return 0 }
            unsafe HTTP2Session.of(context)?.read(id, Span(_unsafeStart: bytes, count: count))
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, context in
            guard let frame = unsafe frame, let session = unsafe HTTP2Session.of(context) else { return 0 }
            unsafe session.received(frame.pointee)
            return session.emptyFrames <= HTTP2Session.maxEmptyFrames ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE.rawValue
        }
        unsafe nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks) { _, _, code, context in
            unsafe HTTP2Session.of(context)?.note(error: code)
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks) { _, frame, _, context in
            if let frame = unsafe frame { unsafe HTTP2Session.of(context)?.didNotSend(frame.pointee) }
            return 0
        }
        unsafe nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, id, code, context in
            unsafe HTTP2Session.of(context)?.closed(id, code)
            return 0
        }
        Self.check(unsafe nghttp2_option_new(&options))
        // `HTTP2ResponseReader` checks answers, and requests are made of checked parts.
        unsafe nghttp2_option_set_no_http_messaging(options, 1)
        // Closed streams are kept for priorities only, and this client sends none.
        unsafe nghttp2_option_set_no_closed_streams(options, 1)
        Self.check(unsafe nghttp2_session_client_new2(&session, callbacks, nil, options))
        guard let session = unsafe session else { preconditionFailure("libnghttp2 made no session") }
        return unsafe session
    }
}
