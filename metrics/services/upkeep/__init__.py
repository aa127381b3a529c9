"""What workers do by themselves: dispatching, checking, counting."""
