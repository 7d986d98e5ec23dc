import Synchronization

/// The trace that a request belongs to, and the request's span if the gateway records it.
///
/// ```
/// caller's span ─▶ server span of the request ─┬▶ client span of each call to FCM
///                                              └▶ client span of an exchange for an access token
/// ```
///
/// A trace that is not recorded is propagated as it arrived: the caller's span is the parent of FCM's work, because the
/// gateway exports no span of its own.
///
/// It is a class because it follows the request everywhere and most requests have none.
package final class RequestTrace: Sendable {
    fileprivate struct Recording {
        let recorder: RequestTracer.Recorder
        let parentID: String?
        let state: TraceState?
        let propagates: Bool
        let arrival: Uptime
        let time: Timestamp
    }

    /// 32 hexadecimal digits.
    package let traceID: String
    /// 16 hexadecimal digits: the id of the request's span if it is recorded, else of the caller's span.
    package let spanID: String
    /// The fields of calls that have no span of their own.
    package let fields: [TraceField]
    private let recording: Recording?

    fileprivate init(handingOn parent: TraceParent, _ state: TraceState?, propagates: Bool) {
        self.traceID = parent.traceID
        self.spanID = parent.spanID
        self.fields = propagates ? Self.fields(parent.text, state) : []
        self.recording = nil
    }

    fileprivate init(_ recording: Recording, of traceID: String) {
        self.traceID = traceID
        self.spanID = recording.recorder.newSpanID()
        self.fields = []
        self.recording = recording
    }

    private static func fields(_ parent: String, _ state: TraceState?) -> [TraceField] {
        [TraceField(.parent, parent)] + (state.map { [TraceField(.state, $0.text)] } ?? [])
    }

    package var isRecorded: Bool { self.recording != nil }

    /// Records the request's span, if it has one.
    ///
    /// By OpenTelemetry's conventions a 4xx is the caller's mistake and no error of the server. `url.path` is left out,
    /// since a path may hold a device's token, and a method that HTTP does not have, since it may be any text.
    package func end(
        _ method: String,
        at route: String?,
        scheme: String,
        status: Int,
        code: String?,
        tenant: String?,
        requestID: String,
        remoteAddress: String?,
        after duration: Duration
    ) {
        guard let recording = self.recording else { return }
        var span = TraceSpan(
            traceID: self.traceID,
            id: self.spanID,
            parentID: recording.parentID,
            isParentRemote: recording.parentID != nil,
            state: recording.state?.text,
            kind: .server,
            start: self.nanoseconds(at: recording.arrival),
            end: self.nanoseconds(at: recording.arrival + duration)
        )
        span.name(method, at: route)
        span.set("url.scheme", .text(scheme))
        span.set("http.route", route.map { .text($0) })
        span.set("http.response.status_code", .number(status))
        span.set("client.address", remoteAddress.map { .text($0) })
        span.set("fcmgw.request_id", .text(requestID))
        span.set("fcmgw.tenant", tenant.map { .text($0) })
        span.set("fcmgw.code", code.map { .text($0) })
        if status >= 500 { span.fail(code ?? String(status)) }
        recording.recorder.record(span)
    }

    /// Begins the span of a call to another server; `nil` if the trace is not recorded.
    ///
    /// The route is the path's template; `url.full` is left out, since a path may hold a device's token. `resends` is
    /// the number of earlier attempts at the same call.
    package func begin(
        _ method: String,
        at route: String,
        of server: (scheme: String, host: String, port: Int),
        tenant: String? = nil,
        resends: Int = 0,
        start: Uptime
    ) -> UpstreamSpan? {
        guard let recording = self.recording else { return nil }
        var span = TraceSpan(
            traceID: self.traceID,
            id: recording.recorder.newSpanID(),
            parentID: self.spanID,
            kind: .client,
            start: self.nanoseconds(at: start)
        )
        span.name(method, at: route)
        span.set("url.scheme", .text(server.scheme))
        span.set("server.address", .text(server.host))
        span.set("server.port", .number(server.port))
        span.set("fcmgw.tenant", tenant.map { .text($0) })
        if resends > 0 { span.set("http.request.resend_count", .number(resends)) }
        return UpstreamSpan(
            span,
            in: self,
            fields: recording.propagates ? Self.fields("00-\(span.traceID)-\(span.id)-01", recording.state) : []
        )
    }

    fileprivate func record(_ span: TraceSpan, endingAt end: Uptime) {
        var span = span
        span.end = self.nanoseconds(at: end)
        self.recording?.recorder.record(span)
    }

    /// Nanoseconds since 1970, counted from the request's arrival, so that a clock that is set meanwhile reverses no span.
    private func nanoseconds(at instant: Uptime) -> Int64 {
        guard let recording = self.recording else { return 0 }
        return recording.time.microseconds * 1_000 + (instant - recording.arrival).nanoseconds
    }
}

/// The span of a running call. ``answered(status:at:)`` or ``failed(_:at:)`` ends and records it.
///
/// It is a class, so that an attempt without a span holds only a `nil` reference.
package final class UpstreamSpan: Sendable {
    /// The fields that the call's request carries.
    package let fields: [TraceField]
    private let span: TraceSpan
    private let trace: RequestTrace

    fileprivate init(_ span: TraceSpan, in trace: RequestTrace, fields: [TraceField]) {
        self.span = span
        self.trace = trace
        self.fields = fields
    }

    /// The server answered; by OpenTelemetry's conventions a 4xx is an error of its client.
    package func answered(status: Int, at end: Uptime) {
        var span = self.span
        span.set("http.response.status_code", .number(status))
        if status >= 400 { span.fail(String(status)) }
        self.trace.record(span, endingAt: end)
    }

    /// No answer arrived; the failure's name is from a bounded set.
    package func failed(_ name: String, at end: Uptime) {
        var span = self.span
        span.fail(name)
        self.trace.record(span, endingAt: end)
    }
}

/// A span in OpenTelemetry's terms.
package struct TraceSpan: Sendable {
    /// A span of a request that was answered, or of a call that was made.
    package enum Kind: Sendable {
        case server
        case client
    }

    /// An attribute's value.
    package enum Value: Sendable, Equatable {
        case text(String)
        case number(Int)
    }

    private static let methods: Set<String> = [
        "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
    ]

    package let traceID: String
    package let id: String
    package var parentID: String?
    /// True if the parent is a span of another process.
    package var isParentRemote = false
    /// The value of `tracestate`.
    package var state: String?
    package var name = ""
    package let kind: Kind
    /// Nanoseconds since 1970.
    package let start: Int64
    package var end: Int64 = 0
    /// True if the request or call failed; the attribute `error.type` names the failure.
    package var isError = false
    package var attributes: [(name: String, value: Value)] = []

    package subscript(name: String) -> Value? { self.attributes.first { $0.name == name }?.value }

    mutating func set(_ name: String, _ value: Value?) {
        if let value { self.attributes.append((name, value)) }
    }

    mutating func fail(_ name: String) {
        self.isError = true
        self.set("error.type", .text(name))
    }

    /// Names the span by the method, which may be any text, and the path's template, if there is one.
    fileprivate mutating func name(_ method: String, at route: String?) {
        let isKnown = Self.methods.contains(method)
        self.name = (isKnown ? method : "HTTP") + (route.map { " \($0)" } ?? "")
        self.set("http.request.method", .text(isKnown ? method : "_OTHER"))
    }
}

/// Finds the trace that a request belongs to, and decides if its spans are recorded.
///
/// | the request's `traceparent` | without a recorder | with one |
/// |---|---|---|
/// | sampled (flag 1) | handed on | recorded |
/// | not sampled | handed on | handed on |
/// | absent or malformed | no trace | a new trace, recorded, for a part of the requests; no trace for the others |
///
/// A caller's decision holds whatever the part is: a trace with holes is of no use.
package struct RequestTracer: Sendable {
    /// Records the spans of sampled traces.
    package final class Recorder: Sendable {
        /// Trace ids whose lower 56 bits are below it are not sampled.
        private let threshold: UInt64
        private let randomness = Mutex(RandomReserve())
        fileprivate let record: @Sendable (TraceSpan) -> Void

        /// Samples a part of new traces, from 0 to 1. `record` is called on event loops with each span that has ended:
        /// it must not block.
        package init(sampling ratio: Double, record: @escaping @Sendable (TraceSpan) -> Void) {
            self.threshold = UInt64((1 - ratio) * 0x1p56)
            self.record = record
        }

        /// Decides by the lower half of a new trace's id, which is random.
        ///
        /// OpenTelemetry's samplers decide by the same bits: with a ratio of 0.25 the ids from 0xC0000000000000 up are
        /// sampled, and a service with a ratio of 0.5 samples them too.
        func samples(_ low: UInt64) -> Bool { low & 0x00FF_FFFF_FFFF_FFFF >= self.threshold }

        /// Draws the id of a new trace; `nil` if the trace is not sampled.
        fileprivate func newTraceID() -> String? {
            let low = self.word()
            return self.samples(low) ? Self.text([self.word(), low]) : nil
        }

        /// Draws the id of a new span; an id of zeros would be none.
        fileprivate func newSpanID() -> String { Self.text([max(self.word(), 1)]) }

        private func word() -> UInt64 { self.randomness.withLock { $0.next() } }

        private static func text(_ words: [UInt64]) -> String {
            var digits: [UInt8] = []
            for word in words { digits.append(hexadecimal: word) }
            return String(decoding: digits, as: UTF8.self)
        }
    }

    private let recorder: Recorder?
    private let propagates: Bool

    /// Without a recorder, callers' traces are handed on; unless it `propagates`, only to logs and the audit.
    package init(_ recorder: Recorder? = nil, propagates: Bool = true) {
        self.recorder = recorder
        self.propagates = propagates
    }

    /// True if requests without a trace may begin one; if not, they need not be asked about.
    package var beginsTraces: Bool { self.recorder != nil }

    /// Returns the trace of a request by its fields `traceparent` and `tracestate`, or `nil` if it has none.
    package func trace(
        parent: String?,
        state: @autoclosure () -> String?,
        arrival: Uptime,
        time: Timestamp
    ) -> RequestTrace? {
        let parent = parent.flatMap(TraceParent.init)
        // A state without a parent means nothing.
        let state = parent == nil ? nil : state().flatMap(TraceState.init)
        if let parent, self.recorder == nil || !parent.isSampled {
            return RequestTrace(handingOn: parent, state, propagates: self.propagates)
        }
        guard let recorder = self.recorder, let traceID = parent?.traceID ?? recorder.newTraceID() else { return nil }
        let recording = RequestTrace.Recording(
            recorder: recorder,
            parentID: parent?.spanID,
            state: state,
            propagates: self.propagates,
            arrival: arrival,
            time: time
        )
        return RequestTrace(recording, of: traceID)
    }
}
