package import Tracing

/// The trace that a request belongs to, and the span of the request in it where spans are recorded.
///
/// A class, since it goes wherever the request goes and is absent mostly.
package final class RequestTrace: Sendable {
    /// 32 hexadecimal digits; `nil` where the tracer does not tell it in the way of W3C Trace Context.
    package let traceID: String?
    /// 16 hexadecimal digits; where spans are not recorded, the id of the caller's span.
    package let spanID: String?
    /// What upstream servers are told where spans are not recorded.
    private let fields: [TraceField]
    private let recording: Recording?

    private struct Recording {
        let tracer: any Tracer
        let span: any Tracing.Span
        let propagates: Bool

        func fields(of span: any Tracing.Span) -> [TraceField] {
            self.propagates ? Self.fields(of: span, self.tracer) : []
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
        package var status: Int
        package var code: String?
        package var tenant: String?
        package var requestID: String
        package var remoteAddress: String?

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

    /// Does something within a span of its own, where spans are recorded; its name and those of failures are bounded sets.
    package func step<Value>(_ name: String, failure: (Value) -> String?, _ body: () async -> Value) async -> Value {
        guard let recording = self.recording else { return await body() }
        let span = recording.tracer.startSpan(name, context: recording.span.context, ofKind: .internal)
        defer { span.end() }
        let value = await body()
        if let failure = failure(value) { span.fail(failure) }
        return value
    }
}

/// One call to an upstream server, as its span tells of it.
package struct UpstreamAttempt: Sendable {
    package var method: String
    /// The path's template: paths themselves may hold tokens.
    package var route: String
    package var host: String
    package var port: Int
    package var tenant: String
    /// How often the same has been tried before.
    package var repeats: Int

    package init(method: String, route: String, host: String, port: Int, tenant: String, repeats: Int = 0) {
        self.method = method
        self.route = route
        self.host = host
        self.port = port
        self.tenant = tenant
        self.repeats = repeats
    }

    fileprivate func describe(_ attributes: inout SpanAttributes) {
        attributes.set("http.request.method", value: .string(SpanMethod(self.method).attribute))
        attributes.set("url.template", value: .string(self.route))
        attributes.set("server.address", value: .string(self.host))
        attributes.set("server.port", value: .int64(Int64(self.port)))
        attributes.set("fcmgw.tenant", value: .string(self.tenant))
        guard self.repeats > 0 else { return }
        attributes.set("http.request.resend_count", value: .int64(Int64(self.repeats)))
    }
}

/// A call to an upstream server under way: the fields that its request has to carry, and where its end is told.
package final class UpstreamSpan: Sendable {
    package let fields: [TraceField]
    private let span: (any Tracing.Span)?

    fileprivate init(fields: [TraceField], span: (any Tracing.Span)? = nil) {
        self.fields = fields
        self.span = span
    }

    /// The server answered; by the conventions of OpenTelemetry, a refusal is an error of its client's.
    package func answered(status: Int) {
        guard let span = self.span else { return }
        defer { span.end() }
        guard span.isRecording else { return }
        span.updateAttributes { attributes in
            attributes.set("http.response.status_code", value: .int64(Int64(status)))
            if status >= 400 { attributes.set("error.type", value: .string(String(status))) }
        }
        if status >= 400 { span.setStatus(SpanStatus(code: .error)) }
    }

    /// No answer came; the name of the failure is one of a bounded set.
    package func failed(_ name: String) {
        guard let span = self.span else { return }
        span.fail(name)
        span.end()
    }
}

/// A request's method as spans tell of it by the HTTP conventions of OpenTelemetry.
struct SpanMethod {
    private static let known: Set<String> = [
        "CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE",
    ]

    let name: String
    let attribute: String

    /// A method as it was sent may be any text.
    init(_ method: String) {
        let isKnown = Self.known.contains(method)
        self.name = isKnown ? method : "HTTP"
        self.attribute = isKnown ? method : "_OTHER"
    }

    /// Without a template of the path, the method alone.
    func name(at route: String?) -> String {
        route.map { "\(self.name) \($0)" } ?? self.name
    }
}

extension Tracing.Span {
    /// Notes a failure without an answer that says why, by a name of a bounded set.
    fileprivate func fail(_ name: String) {
        guard self.isRecording else { return }
        self.updateAttributes { $0.set("error.type", value: .string(name)) }
        self.setStatus(SpanStatus(code: .error, message: name))
        self.recordError(SpanFailure(name: name))
    }
}

private struct SpanFailure: Error {
    let name: String
}

/// Gathers what upstream servers are told of a trace.
///
/// That is the place in it and no more, whatever else a tracer hands on: `baggage` holds what callers say to each other.
private struct TraceInjector: Injector {
    func inject(_ value: String, forKey key: String, into fields: inout [TraceField]) {
        guard let name = TraceField.Name(rawValue: key.lowercased()) else { return }
        fields.append(TraceField(name, value))
    }
}

/// Finds out to which trace a request belongs, and has what the gateway does for it recorded where somebody listens.
///
/// Without a tracer a caller's trace is only handed on, and a request without one costs a look at its head. Which of the
/// two it is is decided when the process starts: asking for the process's tracer at each request would take a lock.
package struct RequestTracer: Sendable {
    private let tracer: (any Tracer)?
    private let propagates: Bool
    /// Whether every request is recorded, so that ``begin(_:field:)`` is worth its while.
    package let isRecording: Bool

    package init(_ tracer: (any Tracer)? = nil, propagates: Bool = true) {
        self.tracer = tracer
        self.propagates = propagates
        self.isRecording = tracer != nil
    }

    /// Continues the trace that a caller began, by its fields `traceparent` and `tracestate`; nil where the first is
    /// malformed or absent.
    package func handOn(parent: String?, state: String?) -> RequestTrace? {
        guard let parent = parent.flatMap(TraceParent.init) else { return nil }
        guard self.propagates else { return RequestTrace(parent, fields: []) }
        var fields = [TraceField(.parent, parent.text)]
        if let state = state.flatMap(TraceState.init) {
            fields.append(TraceField(.state, state.text))
        }
        return RequestTrace(parent, fields: fields)
    }

    /// Begins the span of a request, in the caller's trace or in a new one.
    ///
    /// Nil where there is neither a tracer nor a caller's trace; `field` looks up a field of the request's head.
    package func begin(_ method: String, field: @escaping @Sendable (String) -> String?) -> RequestTrace? {
        let given = field(TraceField.Name.parent.rawValue)
        guard let tracer = self.tracer else {
            return self.handOn(parent: given, state: field(TraceField.Name.state.rawValue))
        }
        let parent = given.flatMap(TraceParent.init)
        let state = field(TraceField.Name.state.rawValue).flatMap(TraceState.init)
        var context = InstrumentationContext.topLevel
        tracer.extract(field, into: &context, using: TraceExtractor(parent: parent, state: state))
        let span = tracer.startSpan(SpanMethod(method).name, context: context, ofKind: .server)
        return RequestTrace(span, of: tracer, continuing: parent, propagates: self.propagates)
    }
}

/// Looks the fields of a request's head up for a tracer.
///
/// What is malformed there is hidden from it: then its trace begins here, whatever the tracer would make of it.
private struct TraceExtractor: Extractor {
    typealias Carrier = @Sendable (String) -> String?

    /// As far as they are well-formed.
    let parent: TraceParent?
    let state: TraceState?

    func extract(key: String, from carrier: @Sendable (String) -> String?) -> String? {
        switch TraceField.Name(rawValue: key.lowercased()) {
        case .parent: self.parent?.text
        case .state: self.parent == nil ? nil : self.state?.text
        case nil: carrier(key)
        }
    }
}
