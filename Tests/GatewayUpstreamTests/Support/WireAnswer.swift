/// HTTP responses as text.
enum WireAnswer {
    static let accepted = text(
        "200 OK",
        #"{"multicast_id":1,"success":1,"failure":0,"canonical_ids":0,"results":[{"message_id":"0:1"}]}"#
    )

    /// An answer with a length and these fields.
    static func text(_ status: String, _ body: String, _ fields: String...) -> String {
        let lines = ["HTTP/1.1 \(status)", "Content-Length: \(body.utf8.count)"] + fields
        return lines.joined(separator: "\r\n") + "\r\n\r\n" + body
    }
}
