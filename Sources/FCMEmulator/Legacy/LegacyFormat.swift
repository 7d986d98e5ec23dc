/// The two encodings of `/fcm/send`.
enum LegacyFormat: Sendable, Equatable {
    case json
    case form

    /// The encoding a media type selects: `application/json` in any case and with any parameters is JSON, everything
    /// else, also none, is a form (L-CT).
    init(contentType: String?) {
        let mediaType = (contentType ?? "").prefix { $0 != ";" }
        let isJSON = mediaType.split(whereSeparator: \.isWhitespace).joined().lowercased() == "application/json"
        self = isJSON ? .json : .form
    }
}
