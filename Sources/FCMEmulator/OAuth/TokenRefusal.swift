/// Why no access token is issued (RFC 6749, 5.2).
struct TokenRefusal: Error, Equatable {
    let status: Int
    /// The member `error`.
    let code: String
    /// The member `error_description`.
    let description: String

    /// The assertion is not acceptable.
    static func invalidGrant(_ description: String) -> Self {
        Self(status: 400, code: "invalid_grant", description: description)
    }

    /// The request has not the form it must have.
    static func invalidRequest(_ description: String) -> Self {
        Self(status: 400, code: "invalid_request", description: description)
    }

    /// The scopes asked for do not exist.
    static let invalidScope = Self(
        status: 400,
        code: "invalid_scope",
        description: "Invalid OAuth scope or ID token audience provided."
    )

    /// The account asks in the name of somebody else.
    static let unauthorizedClient = Self(
        status: 401,
        code: "unauthorized_client",
        description: "Client is unauthorized to retrieve access tokens using this method."
    )

    var answer: Answer {
        let description = JSONValue.quoted(self.description)
        return .json(
            #"{"error":\#(JSONValue.quoted(self.code)),"error_description":\#(description)}"#,
            status: self.status
        )
    }
}
