package import EventLoopHTTP
import Foundation
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// The configured receiver, which accepts spans by OTLP over HTTP.
///
/// https://opentelemetry.io/docs/specs/otlp/#otlphttp
package struct OTLPReceiver: Sendable {
    /// The meaning of a receiver's answer.
    enum Answer: Equatable {
        /// The receiver accepted all spans but `rejected`.
        case taken(rejected: Int)
        /// The same request may be repeated, after `retryAfter` seconds if the receiver names a time.
        case unavailable(retryAfter: Int?)
        /// The request must not be repeated.
        case refused

        /// Follows https://opentelemetry.io/docs/specs/otlp/#failures, which names the four statuses that allow a
        /// retry.
        init(status: Int, retryAfter: String?, body: ByteBuffer) {
            switch status {
            case 200...299:
                let partial = (try? JSONDocument(parsing: body, limits: .small))?.root["partialSuccess"]
                // JSON of protobuf writes a 64-bit number as a string, but some receivers write a number.
                let rejected = partial?["rejectedSpans"].flatMap { $0.number?.integer ?? $0.string.flatMap { Int($0) } }
                self = .taken(rejected: max(rejected ?? 0, 0))
            case 429, 502, 503, 504: self = .unavailable(retryAfter: retryAfter.flatMap { Int($0) })
            default: self = .refused
            }
        }
    }

    /// The reason why an address or a list of fields can't be used; repeats neither, since both may hold a secret.
    package struct Fault: Error {
        package let message: String
    }

    private static let signal = "/v1/traces"
    /// The fields that describe the request, which an operator may not set.
    private static let ownFields: Set<String> = [
        "host", "content-type", "content-encoding", "content-length", "transfer-encoding", "connection", "te",
        "trailer", "upgrade", "keep-alive", "date",
    ]

    package let origin: HTTPOrigin
    let path: String
    private let fields: HTTPFields

    /// Creates a receiver at a base URL such as `http://collector:4318`; spans go to `/v1/traces` below it.
    ///
    /// The fields are a list in the form of ``fields(_:)``.
    package init(_ url: String, fields: String? = nil) throws(Fault) {
        let base = url.hasSuffix("/") ? url.dropLast() : url[...]
        let scheme = base.range(of: "://")?.upperBound ?? base.startIndex
        let start = base[scheme...].firstIndex(of: "/") ?? base.endIndex
        guard let origin = HTTPOrigin(String(base[..<start])) else {
            throw Fault(message: "expected a URL such as http://localhost:4318, without a user name")
        }
        let path = base[start...]
        guard path.utf8.allSatisfy({ (0x21...0x7E).contains($0) }), !path.contains(where: { "?#".contains($0) }) else {
            throw Fault(message: "must be a base URL, without a query")
        }
        guard !path.hasSuffix(Self.signal) else { throw Fault(message: "leave out \(Self.signal), which is added") }
        self.origin = origin
        self.path = path + Self.signal
        self.fields = try fields.map(Self.fields) ?? [:]
    }

    /// Returns why an address can't be used. Returns `nil` if the address is usable or empty.
    @Sendable package static func problem(_ url: String) -> String? {
        do throws(Fault) {
            if !url.isEmpty { _ = try OTLPReceiver(url) }
            return nil
        } catch {
            return error.message
        }
    }

    /// Returns why a list of header fields can't be used.
    @Sendable package static func fieldsProblem(_ list: String) -> String? {
        do throws(Fault) {
            _ = try Self.fields(list)
            return nil
        } catch {
            return error.message
        }
    }

    /// Reads header fields as `OTEL_EXPORTER_OTLP_HEADERS` has them: `name=value,name=value`, values percent-encoded.
    static func fields(_ list: String) throws(Fault) -> HTTPFields {
        var fields = HTTPFields()
        for (index, member) in list.split(separator: ",", omittingEmptySubsequences: false).enumerated() {
            let parts = member.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                .map { $0.trimmingCharacters(in: .whitespaces) }
            guard parts.count == 2, let name = HTTPField.Name(parts[0]),
                !Self.ownFields.contains(name.canonicalName), let value = parts[1].removingPercentEncoding,
                !value.isEmpty, value.utf8.allSatisfy({ (0x20...0x7E).contains($0) })
            else {
                throw Fault(
                    message: "expected name=value,name=value with percent-encoded values; "
                        + "member \(index + 1) lacks this form, or names a field that the gateway sets itself"
                )
            }
            fields.append(HTTPField(name: name, value: value))
        }
        return fields
    }

    func request(_ spans: [TraceSpan], of resource: Resource) -> HTTPClientRequest {
        var fields = self.fields
        fields[.userAgent] = fields[.userAgent] ?? "\(Resource.service)/\(resource.version)"
        fields[.contentType] = "application/json"
        let body = resource.encode(spans)
        return HTTPClientRequest(method: .post, path: self.path, headers: HTTPHeaderLines(fields), body: body)
    }
}

extension OTLPReceiver {
    /// The process that creates the spans (OpenTelemetry's resource).
    package struct Resource: Sendable {
        fileprivate static let service = "fcm-gateway"
        let version: String
        let instance: String?

        /// `instance` distinguishes the replicas of one store.
        package init(version: String, instance: String?) {
            self.version = version
            self.instance = instance
        }

        /// Writes spans as an `ExportTraceServiceRequest` in OTLP's JSON: ids in hexadecimal digits, 64-bit numbers as
        /// strings, enumerations as numbers.
        func encode(_ spans: [TraceSpan]) -> ByteBuffer {
            var json = JSONWriter(reservingCapacity: 1_024 * (1 + spans.count))
            json.beginObject()
            json.beginArray("resourceSpans")
            json.beginObject()
            json.beginObject("resource")
            let instance = self.instance.map { [(name: "service.instance.id", value: TraceSpan.Value.text($0))] } ?? []
            json.attributes(
                [("service.name", .text(Self.service)), ("service.version", .text(self.version))] + instance
            )
            json.endObject()
            json.beginArray("scopeSpans")
            json.beginObject()
            json.beginObject("scope")
            json.member("name", Self.service)
            json.member("version", self.version)
            json.endObject()
            json.beginArray("spans")
            for span in spans { json.span(span) }
            json.endArray()
            json.endObject()
            json.endArray()
            json.endObject()
            json.endArray()
            json.endObject()
            return json.finish()
        }
    }
}

extension JSONWriter {
    // Numbers of enumerations in opentelemetry-proto: SpanKind, Status.StatusCode, SpanFlags.
    private static let kinds: [TraceSpan.Kind: Int] = [.server: 2, .client: 3]
    private static let error = 2
    private static let sampled = 0x001
    private static let knowsParent = 0x100
    private static let parentIsRemote = 0x200

    fileprivate mutating func span(_ span: TraceSpan) {
        self.beginObject()
        self.member("traceId", span.traceID)
        self.member("spanId", span.id)
        if let parentID = span.parentID { self.member("parentSpanId", parentID) }
        if let state = span.state { self.member("traceState", state) }
        self.member("flags", Self.sampled | Self.knowsParent | (span.isParentRemote ? Self.parentIsRemote : 0))
        self.member("name", span.name)
        self.member("kind", Self.kinds[span.kind] ?? 0)
        self.member("startTimeUnixNano", String(span.start))
        self.member("endTimeUnixNano", String(span.end))
        self.attributes(span.attributes)
        if span.isError {
            self.beginObject("status")
            self.member("code", Self.error)
            self.endObject()
        }
        self.endObject()
    }

    fileprivate mutating func attributes(_ attributes: [(name: String, value: TraceSpan.Value)]) {
        self.beginArray("attributes")
        for (name, value) in attributes {
            self.beginObject()
            self.member("key", name)
            self.beginObject("value")
            switch value {
            case .text(let text): self.member("stringValue", text)
            case .number(let number): self.member("intValue", String(number))
            }
            self.endObject()
            self.endObject()
        }
        self.endArray()
    }
}
