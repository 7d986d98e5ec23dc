import EventLoopHTTP

extension HTTPClientConfiguration {
    /// One that waits for connections for as long as a test may take, however busy the machine is.
    static var patient: HTTPClientConfiguration {
        var configuration = HTTPClientConfiguration()
        configuration.connectTimeout = .seconds(600)
        return configuration
    }
}
