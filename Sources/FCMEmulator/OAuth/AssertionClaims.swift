import JWTKit

/// The claims of an assertion; whether they hold is judged by ``TokenEndpoint``, by the emulator's own clock.
struct AssertionClaims: JWTPayload, Equatable {
    var iss: String
    var scope: String?
    var aud: String
    /// Seconds since 1970, like `exp`.
    var iat: Int?
    var exp: Int?
    var sub: String?

    func verify(using algorithm: some JWTAlgorithm) {}
}
