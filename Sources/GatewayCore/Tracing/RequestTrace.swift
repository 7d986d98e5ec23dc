import Tracing

/// The trace that a request belongs to, and the span of the request in it where spans are recorded.
///
/// A class, since it goes wherever the request goes and is absent mostly.
package final class RequestTrace: Sendable {
    /// The trace's id, 32 hexadecimal digits; `nil` where the tracer does not tell it in the way of W3C Trace Context.
    package let traceID: String?
    /// The id of the request's span, 16 hexadecimal digits; where spans are not recorded, that of the caller's.
    package let spanID: String?
    /// What upstream servers are told where spans are not recorded.
    private let fields: [TraceField]
    private let recording: Recording?

    /// What records spans.
    private struct Recording {
        let tracer: any Tracer
        let span: any Tracing.Span
        let propagates: Bool

        /// What a call in a span's name carries.
        func fields(of span: any Tracing.Span) -> [TraceField] {
            guard self.propagates else { return [] }
            return Self.fields(of: span, self.tracer)
        }

        static func fields(of span: any Tracing.Span, _ tracer: any Tracer) -> [TraceField] {
            var fields: [TraceField] = []
            tracer.inject(span.context, into: &fields, using: TraceInjector())
            return fields
        }
    }

    /// A caller's trace that is handed on as it came.
    init(_ parent: TraceParent, fields: [TraceField]) {
        self.traceID = parent.traceID
        self.spanID = parent.spanID
        self.fields = fields
        self.recording = nil
    }

    /// A trace in which the request has a span.
    init(_ span: any Tracing.Span, of tracer: any Tracer, continuing parent: TraceParent?, propagates: Bool) {
        let fields = Recording.fields(of: span, tracer)
        let own = fields.first { $0.name == .parent }.flatMap { TraceParent($0.value) }
        self.traceID = own?.traceID ?? parent?.traceID
        self.spanID = own?.spanID ?? parent?.spanID
        self.fields = []
        self.recording = Recording(tracer: tracer, span: span, propagates: propagates)
    }

    // MARK: The request

    /// How a request ended, for its span.
    package struct Ending: Sendable {
        /// The route's template; `nil` for an address that has no route.
        package var route: String?
        /// The method as it was sent.
        package var method: String
        /// The answer's status.
        package var status: Int
        /// The code of a refusal.
        package var code: String?
        /// Whose request it was.
        package var tenant: String?
        /// The request's id.
        package var requestID: String
        /// The caller's address.
        package var remoteAddress: String?

        /// An ending.
        package init(
            route: String?,
            method: String,
            status: Int,
            code: String?,
            tenant: String?,
            requestID: String,
            remoteAddress: String?
        ) {
            self.route = route
            self.method = method
            self.status = status
            self.code = code
            self.tenant = tenant
            self.requestID = requestID
            self.remoteAddress = remoteAddress
        }
    }

    /// Ends the request's span, if it has one.
    ///
    /// By the conventions of OpenTelemetry, a caller's own mistake is no error of the server that tells it so. The path
    /// is left out, since it may hold a device's token, and so is a method that is none, since it may be any text.
    package func end(_ ending: @autoclosure () -> Ending) {
        guard let span = self.recording?.span else { return }
        defer { span.end() }
        guard span.isRecording else { return }
        let ending = ending()
        let method = SpanMethod(ending.method)
        span.operationName = method.name(at: ending.route)
        span.updateAttributes { attributes in
            attributes.set("http.request.method", value: .string(method.attribute))
            attributes.set("http.route", value: ending.route.map { .string($0) })
            attributes.set("http.response.status_code", value: .int64(Int64(ending.status)))
            attributes.set("client.address", value: ending.remoteAddress.map { .string($0) })
            attributes.set("fcmgw.request_id", value: .string(ending.requestID))
            attributes.set("fcmgw.tenant", value: ending.tenant.map { .string($0) })
            attributes.set("fcmgw.code", value: ending.code.map { .string($0) })
            guard ending.status >= 500 else { return }
            attributes.set("error.type", value: .string(ending.code ?? String(ending.status)))
        }
        // Without words: the attributes tell why.
        if ending.status >= 500 { span.setStatus(SpanStatus(code: .error)) }
    }

    // MARK: What is done for it

    /// Begins a call to an upstream server; it has to be ended by one of its own methods.
    package func begin(_ attempt: UpstreamAttempt) -> UpstreamSpan {
        guard let recording = self.recording else { return UpstreamSpan(fields: self.fields) }
        let span = recording.tracer.startSpan(
            SpanMethod(attempt.method).name(at: attempt.route),
            context: recording.span.context,
            ofKind: .client
        )
        if span.isRecording { span.updateAttributes(attempt.describe) }
        return UpstreamSpan(fields: recording.fields(of: span), span: span)
    }

    /// Does something within a span of its own, where spans are recorded.
    ///
    /// - Parameters:
    ///   - name: what is done; one of a bounded set.
    ///   - failure: the name of what went wrong, of a bounded set; `nil` where nothing did.
    ///   - body: does it.
    /// - Returns: what the body returns.
    package func step<Value>(
        _ name: String,
        failure: (Value) -> String?,
        _ body: () async -> Value
    ) async -> Value {
        guard let recording = self.recording else { return await body() }
        let span = recording.tracer.startSpan(name, context: recording.span.context, ofKind: .internal)
        defer { span.end() }
        let value = await body()
        if let failure = failure(value) { span.fail(failure) }
        return value
    }
}
