import CFiles
import EventLoopHTTP
import HTTPTypes
import NIOCore

/// A file that is part of the program, and is served as it is.
struct EmbeddedFile: Sendable {
    // The media type of RFC 9512.
    static let gatewayDescription = unsafe EmbeddedFile(embedded_gateway_description(), "application/yaml")
    static let adminDescription = unsafe EmbeddedFile(embedded_admin_description(), "application/yaml")
    static let consoleStyle = unsafe EmbeddedFile(embedded_console_style(), "text/css; charset=utf-8")
    static let consoleScript = unsafe EmbeddedFile(embedded_console_script(), "text/javascript; charset=utf-8")
    static let consoleIcon = unsafe EmbeddedFile(embedded_console_icon(), "image/svg+xml")

    let body: ByteBuffer
    let entityTag: EntityTag
    private let contentType: String

    private init(_ file: embedded_file, _ contentType: String) {
        // The pointer is valid, because the bytes are constants of the program. CFiles counts them as well.
        let bytes = unsafe Array(UnsafeBufferPointer(start: file.bytes, count: file.length))
        self.body = ByteBuffer(bytes: bytes)
        self.entityTag = EntityTag.of(self.body)
        self.contentType = contentType
    }

    func response(to exchange: Exchange) -> HTTPServerResponse {
        // Another version of the gateway has another file at the same address.
        var headers: HTTPHeaderLines = [.eTag: self.entityTag.text, .cacheControl: "no-cache"]
        if let known = exchange[.ifNoneMatch], self.entityTag.isNamed(in: known) {
            return HTTPServerResponse(status: .notModified, headers: headers)
        }
        headers.append(.contentType, self.contentType)
        headers.append(.contentTypeOptions, "nosniff")
        return HTTPServerResponse(status: .ok, headers: headers, body: self.body)
    }
}
