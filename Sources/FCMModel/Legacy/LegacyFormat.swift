/// How a legacy request is written, and so how its answer is.
package enum LegacyFormat: Sendable, Hashable {
    /// A JSON object.
    case json
    /// `application/x-www-form-urlencoded`, answered by lines of text.
    case form

    /// Decides by a request's media type (L-CT): `application/json` in any case and with any parameters is JSON,
    /// everything else a form.
    ///
    /// - Parameter contentType: the value of `Content-Type`; `nil` if there is none.
    package init(contentType: String?) {
        var mediaType = (contentType ?? "").prefix { $0 != ";" }.drop(while: \.isWhitespace)
        while let last = mediaType.last, last.isWhitespace { mediaType.removeLast() }
        self = mediaType.lowercased() == "application/json" ? .json : .form
    }
}
