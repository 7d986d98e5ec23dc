import COpenAPI
import EventLoopHTTP
import GatewayCore
import HTTPTypes
import NIOCore

/// Shows a listener's own OpenAPI description, without a credential.
struct DescriptionRoutes {
    let description: APIDescription

    var endpoints: [any Endpoint] {
        // The server leaves the body of an answer to HEAD out.
        [HTTPRequest.Method.get, .head].map { Handler(open: Route($0, "/openapi.yaml"), self.show) }
    }

    @Sendable
    private func show(_ exchange: Exchange) -> HTTPServerResponse {
        // Another version of the gateway has another description at the same address.
        var headers: HTTPHeaderLines = [.eTag: self.description.entityTag, .cacheControl: "no-cache"]
        if let known = exchange.fields[.ifNoneMatch], self.description.isNamed(in: known) {
            return HTTPServerResponse(status: .notModified, headers: headers)
        }
        // The media type of RFC 9512.
        headers.append(.contentType, "application/yaml")
        return HTTPServerResponse(status: .ok, headers: headers, body: self.description.body)
    }
}

/// The OpenAPI document of a listener, as the file has it.
struct APIDescription: Sendable {
    static let gateway = unsafe APIDescription(start: openapi_gateway_bytes(), count: openapi_gateway_length())
    static let admin = unsafe APIDescription(start: openapi_admin_bytes(), count: openapi_admin_length())

    let body: ByteBuffer
    /// What changes whenever a byte of the document does, as an entity tag.
    let entityTag: String

    private init(start: UnsafePointer<UInt8>?, count: Int) {
        // The bytes are constants of the program: they outlive the pointer, and are as many as the function beside says.
        let bytes = unsafe Array(UnsafeBufferPointer(start: start, count: count))
        self.body = ByteBuffer(bytes: bytes)
        self.entityTag = "\"\(String(CRC32.checksum(bytes), radix: 16))-\(String(count, radix: 16))\""
    }

    /// Whether an `If-None-Match` field means what is served here, so that the caller has it already (RFC 9110, 13.1.2).
    func isNamed(in field: String) -> Bool {
        field.split(separator: ",")
            .contains { candidate in
                let tag = candidate.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }
                return tag == "*" || (tag.hasPrefix("W/") ? tag.dropFirst(2) : tag) == self.entityTag
            }
    }
}
