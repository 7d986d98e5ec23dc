/// Why a control request is refused.
struct ControlError: Error, Equatable {
    let status: Int
    let message: String
    var allow: String?

    /// The request itself is wrong.
    static func badRequest(_ message: String) -> Self {
        Self(status: 400, message: message)
    }

    /// The message as the member `error` of an object.
    var answer: Answer {
        Answer(
            status: self.status,
            contentType: "application/json; charset=UTF-8",
            body: #"{"error":"# + JSONValue.quoted(self.message) + "}",
            headers: self.allow.map { [HeaderField(name: "Allow", value: $0)] } ?? []
        )
    }
}
