/// Control routes for service accounts and access tokens.
extension ControlRoutes {
    /// Answers a request to one of them, nil if it is for another.
    func handleCredentials(_ request: ReceivedRequest, name: Substring) throws(ControlError) -> Answer? {
        switch (name, request.method) {
        case ("service-accounts", "POST"):
            return try self.addServiceAccount(request)
        case ("service-accounts", "DELETE"):
            guard let email = try Self.query(of: request, allowed: ["client_email"])["client_email"] else {
                throw .badRequest("client_email is missing")
            }
            guard self.state.removeAccount(email: email) else {
                throw ControlError(status: 404, message: "there is no account \(email)")
            }
            return .noContent
        case ("access-tokens", "DELETE"):
            self.state.revokeTokens()
            return .noContent
        default:
            return nil
        }
    }

    /// Makes an account, or takes over the one of a file, and answers with the file.
    private func addServiceAccount(_ request: ReceivedRequest) throws(ControlError) -> Answer {
        let members = try ControlMembers(body: request.bodyBytes)
        try members.allow(["project_id", "client_email", "token_uri", "service_account"])
        let file: ServiceAccountFile
        if let object = try members.object("service_account") {
            try members.allow(["service_account"])
            file = try ServiceAccountFile(members: object)
        } else {
            file = try self.makeServiceAccount(members, request: request)
        }
        do throws(EmulatorError) {
            self.state.add(try ServiceAccount(file))
        } catch {
            throw .badRequest("service_account.private_key is no RSA key in PEM of at least 2048 bits")
        }
        return .json(file.json)
    }

    private func makeServiceAccount(
        _ members: ControlMembers,
        request: ReceivedRequest
    ) throws(ControlError) -> ServiceAccountFile {
        guard let project = try members.string("project_id"), !project.isEmpty else {
            throw .badRequest("project_id is missing")
        }
        let email = try members.string("client_email")
        // The address the caller reached the emulator at is the one it will reach the token endpoint at.
        let host = request.header("host") ?? "localhost"
        let uri = try members.string("token_uri") ?? "\(self.scheme)://\(host)\(TokenEndpoint.path)"
        guard let file = try? ServiceAccountFile(making: project, clientEmail: email, tokenURI: uri) else {
            throw ControlError(status: 500, message: "the key could not be made")
        }
        return file
    }
}
