import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore
import StrictJSON

/// Reads merge patches (RFC 7396), and checks `If-Match`: a request that has it must name the current `ETag` (RFC 9110,
/// 13.1.1).
extension Exchange {
    /// The members of a merge patch; `application/json` is accepted too.
    func patchMembers() throws(Refusal) -> JSONMembers {
        try JSONBody.members(
            of: self.request.body,
            contentType: self.contentType,
            limits: .small,
            as: "application/merge-patch+json"
        )
    }

    /// Throws `precondition_failed` if the request's `If-Match` does not name the representation; `nil` means that none
    /// exists.
    func requireMatch(_ representation: ByteBuffer?) throws(GatewayError) {
        guard let wanted = self[.ifMatch] else { return }
        if let representation, EntityTag.of(representation).isNamed(in: wanted) { return }
        throw GatewayError(.preconditionFailed, "It has changed since it was read; read it again and repeat the change")
    }
}

extension HTTPServerResponse {
    /// An answer with JSON and its entity tag.
    init(status: HTTPResponse.Status = .ok, taggedJSON body: ByteBuffer) {
        self.init(status: status, json: body)
        self.headers.append(HTTPFieldKey(.eTag), EntityTag.of(body).text)
    }
}

/// A strong entity tag, which changes with each byte of a representation (RFC 9110, 8.8.3).
struct EntityTag: Sendable, Equatable {
    let text: String

    static func of(_ representation: ByteBuffer) -> EntityTag {
        let bytes = Array(representation.readableBytesView)
        return EntityTag(text: "\"\(String(CRC32.checksum(bytes[...]), radix: 16))-\(String(bytes.count, radix: 16))\"")
    }

    /// True if an `If-Match` or `If-None-Match` field names this tag, as a weak or strong one, or is `*`.
    func isNamed(in field: String) -> Bool {
        field.split(separator: ",")
            .contains { candidate in
                let tag = candidate.drop { $0 == " " || $0 == "\t" }.prefix { $0 != " " && $0 != "\t" }
                return tag == "*" || (tag.hasPrefix("W/") ? tag.dropFirst(2) : tag) == self.text
            }
    }
}
