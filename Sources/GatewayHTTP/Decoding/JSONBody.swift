import FCMModel
import NIOCore
import StrictJSON

/// A request's JSON body.
enum JSONBody {
    /// The members of a body that must be a JSON object.
    ///
    /// - Throws: a problem that names the media type, or where the JSON is at fault.
    static func members(
        of body: ByteBuffer,
        contentType: String?,
        limits: JSONLimits = JSONLimits()
    ) throws(Refusal) -> JSONMembers {
        guard Self.isJSON(contentType) else {
            throw Refusal(.unsupportedMediaType, "Send the body as application/json")
        }
        let document: JSONDocument
        do {
            document = try JSONDocument(parsing: body, limits: limits)
        } catch {
            throw Refusal(error)
        }
        guard let members = document.root.members else {
            throw .noObject(at: document.root.offset)
        }
        return members
    }

    /// Whether a media type is `application/json`, in any case and with any parameters.
    static func isJSON(_ contentType: String?) -> Bool {
        guard let contentType else { return false }
        if contentType == "application/json" { return true }
        let type = contentType.prefix { $0 != ";" && $0 != " " && $0 != "\t" }
        return type.lowercased() == "application/json"
    }
}
