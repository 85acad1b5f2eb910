"""What runs in routers: Routes become the configuration of the HAProxy beside it, and stay so as they change."""
