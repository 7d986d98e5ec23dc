import HTTPTypes

extension HTTPResponse.Status {
    private static let usualPhrases: [Int: String] = {
        let named: [HTTPResponse.Status] = [
            .ok, .created, .accepted, .nonAuthoritativeInformation, .noContent, .resetContent, .partialContent,
            .multipleChoices, .movedPermanently, .found, .seeOther, .notModified, .temporaryRedirect,
            .permanentRedirect, .badRequest, .unauthorized, .forbidden, .notFound, .methodNotAllowed, .notAcceptable,
            .proxyAuthenticationRequired, .requestTimeout, .conflict, .gone, .lengthRequired, .preconditionFailed,
            .contentTooLarge, .uriTooLong, .unsupportedMediaType, .rangeNotSatisfiable, .expectationFailed,
            .misdirectedRequest, .unprocessableContent, .tooEarly, .upgradeRequired, .preconditionRequired,
            .tooManyRequests, .requestHeaderFieldsTooLarge, .unavailableForLegalReasons, .internalServerError,
            .notImplemented, .badGateway, .serviceUnavailable, .gatewayTimeout, .httpVersionNotSupported,
            .networkAuthenticationRequired,
        ]
        return Dictionary(uniqueKeysWithValues: named.map { ($0.code, $0.reasonPhrase) })
    }()

    /// The reason phrase that goes out: the usual one where only a number was given, and none for numbers that have none.
    var writtenPhrase: String {
        self.reasonPhrase.isEmpty ? Self.usualPhrases[self.code] ?? "" : self.reasonPhrase
    }
}
